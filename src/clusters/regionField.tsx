import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useLoaded } from '../components/useLoaded';
import type { RegionChoice } from './regions';

/**
 * Chooses the region whose clusters are listed.
 */
export function RegionField(props: {
  regions: RegionChoice;
  trans: TranslationBundle;
}): JSX.Element {
  const { regions, trans } = props;
  const [load] = React.useState(() => () => regions.known());
  const known = useLoaded(load).value;
  const { chosen } = regions;
  const found = known?.default ?? null;
  const names = new Set(known?.regions ?? []);
  if (chosen !== null) {
    // It may be newer than what the server's boto3 knows.
    names.add(chosen);
  }
  return (
    <select
      className="jp-HyperPod-Region"
      aria-label={trans.__('Region')}
      title={trans.__('Region of the HyperPod clusters that are not connected')}
      value={chosen ?? ''}
      onChange={event => void regions.choose(event.target.value || null)}
    >
      <option value="">
        {found === null
          ? trans.__('Server default')
          : trans.__('%1 (default)', found)}
      </option>
      {[...names].sort().map(name => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
