import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { agoText } from '../components/words';
import { IRunAlarm } from './client';
import { alarmText } from './words';

/**
 * The alarms of a run, in the head of its page.
 */
export function AlarmList(props: {
  alarms: readonly IRunAlarm[];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { alarms, trans } = props;
  return alarms.length === 0 ? null : (
    <div role="status">
      <ul className="jp-HyperPod-Alarms" aria-label={trans.__('Alarms')}>
        {alarms.map(alarm => (
          <li key={alarm.code}>
            {alarmText(alarm, trans)}
            <small>{agoText(alarm.since, trans)}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}
