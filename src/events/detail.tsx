import { Dialog, ReactWidget, showDialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { momentText } from '../components/words';
import type { IEventClient } from './client';
import { LevelChip, resourceText } from './columns';
import { IEventDetail } from './types';

/**
 * Show the details of an event in a dialog: why something failed stands nowhere else.
 */
export async function showEvent(
  client: IEventClient,
  cluster: string,
  id: string,
  trans: TranslationBundle
): Promise<void> {
  const load = () => client.event(cluster, id);
  const body = ReactWidget.create(<EventDetail load={load} trans={trans} />);
  body.addClass('jp-HyperPod-EventDetail');
  await showDialog({
    title: trans.__('Event of %1', cluster),
    body,
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}

function EventDetail(props: {
  load: () => Promise<IEventDetail>;
  trans: TranslationBundle;
}): JSX.Element {
  const { load, trans } = props;
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  return value === null ? (
    <p role="status">{trans.__('Loading from AWS…')}</p>
  ) : (
    <Detail event={value} trans={trans} />
  );
}

function Detail(props: {
  event: IEventDetail;
  trans: TranslationBundle;
}): JSX.Element {
  const { event, trans } = props;
  const facts: [string, React.ReactNode][] = [
    [trans.__('Time'), momentText(event.time)],
    [
      trans.__('Level'),
      event.level && <LevelChip level={event.level} trans={trans} />
    ],
    [trans.__('Resource'), resourceText(event.resource, trans)],
    [trans.__('Instance group'), event.group],
    [trans.__('Instance'), event.instance],
    [trans.__('Reason'), event.reason],
    [trans.__('Event id'), event.event_id]
  ];
  const hasMore = Object.keys(event.metadata).length > 0;
  return (
    <>
      <p>{event.description}</p>
      <dl className="jp-HyperPod-facts">
        {facts
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {hasMore && (
        <pre tabIndex={0} aria-label={trans.__('More from AWS')}>
          {JSON.stringify(event.metadata, null, 2)}
        </pre>
      )}
    </>
  );
}
