import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ISetting } from './awsTypes';

/**
 * The settings of a HyperPod cluster, and what they mean. Those that this version does not know have AWS' own names.
 */
export function Settings(props: {
  settings: readonly ISetting[];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { settings, trans } = props;
  return settings.length === 0 ? null : (
    <section aria-label={trans.__('Settings')}>
      <h2>{trans.__('Settings')}</h2>
      <dl className="jp-HyperPod-Settings">
        {settings.map(setting => (
          <div key={setting.name}>
            <dt>{nameText(setting.name, trans)}</dt>
            <dd>
              {setting.value}
              {setting.meaning && (
                <span className="jp-HyperPod-Settings-meaning">
                  {meaningText(setting, trans)}
                </span>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function nameText(name: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    'node-recovery': trans.__('Failed nodes'),
    provisioning: trans.__('Provisioning'),
    autoscaling: trans.__('Autoscaling'),
    'tiered-storage': trans.__('Tiered checkpoints'),
    subnets: trans.__('Subnets'),
    'security-groups': trans.__('Security groups'),
    'cluster-role': trans.__('Role for scaling'),
    'slurm-configuration': trans.__('Slurm configuration'),
    'accounting-database': trans.__('Accounting database'),
    'eks-cluster': trans.__('EKS cluster'),
    'restricted-groups': trans.__('Restricted groups'),
    'restricted-environment': trans.__('Restricted environment')
  };
  return texts[name] ?? name;
}

/** What a setting means: that of its commonest values is translated, else it is the server's sentence. */
function meaningText(setting: ISetting, trans: TranslationBundle): string {
  switch (`${setting.name} ${setting.value}`) {
    case 'node-recovery Automatic':
      return trans.__('HyperPod reboots or replaces failed nodes');
    case 'node-recovery None':
      return trans.__(
        'failed nodes stay as they are until you reboot or replace them'
      );
    case 'provisioning Continuous':
      return trans.__(
        'instances are added and removed one by one while the cluster stays in service; AWS records events'
      );
    default:
      return setting.meaning ?? '';
  }
}
