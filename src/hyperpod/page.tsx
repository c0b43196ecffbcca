import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ServerTable } from '../clusters/serverTable';
import { TabList } from '../clusters/tabList';
import { ITableQuery } from '../clusters/types';
import { WatchingPage } from '../components/watchingWidget';
import type { IHyperpodClient } from './client';
import { hyperpodNodeColumns } from './nodeColumns';
import { Overview } from './overview';
import { IHyperpodDetail } from './types';
import { Watched } from './watched';

const TABS = ['overview', 'nodes'] as const;
type Tab = (typeof TABS)[number];

/**
 * A HyperPod cluster in the main area, as AWS knows it. Nothing is asked for while it is hidden.
 */
export class HyperpodPage extends WatchingPage<Watched<IHyperpodDetail>> {
  constructor(options: HyperpodPage.IOptions) {
    const { client, cluster } = options;
    super(new Watched(refresh => client.cluster(cluster, refresh)), cluster);
    this.addClass('jp-HyperPod-Aws');
    this.cluster = cluster;
    this._options = options;
  }

  readonly cluster: string;

  protected override render(): JSX.Element {
    return (
      <Tabs {...this._options} watched={this.watched} isShown={this._isShown} />
    );
  }

  private readonly _isShown = () => this.isVisible && !document.hidden;
  private readonly _options: HyperpodPage.IOptions;
}

export namespace HyperpodPage {
  export interface IOptions {
    cluster: string;
    client: IHyperpodClient;
    /** Open its metrics. */
    showMetrics: () => void;
    trans: TranslationBundle;
  }
}

type IProps = HyperpodPage.IOptions & {
  watched: Watched<IHyperpodDetail>;
  isShown: () => boolean;
};

function Tabs(props: IProps): JSX.Element {
  const { cluster, trans, watched } = props;
  const [tab, setTab] = React.useState<Tab>('overview');
  const id = React.useId();
  const labels: Readonly<Record<Tab, string>> = {
    overview: trans.__('Overview'),
    nodes: trans.__('Nodes')
  };
  return (
    <>
      <h1>{watched.value?.name ?? cluster}</h1>
      <TabList
        id={id}
        label={trans.__('What of the cluster is shown')}
        tabs={TABS.map(name => ({ name, label: labels[name] }))}
        current={tab}
        choose={setTab}
      />
      <div
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={`${id}-${tab}`}
        key={tab}
      >
        {tab === 'nodes' ? (
          <Nodes {...props} />
        ) : (
          <Overview
            cluster={watched}
            showMetrics={props.showMetrics}
            trans={trans}
          />
        )}
      </div>
    </>
  );
}

/** The nodes: those of AWS' first page at once, the others as they come. */
function Nodes(props: IProps): JSX.Element {
  const { client, cluster, isShown, trans } = props;
  const load = React.useCallback(
    (query: ITableQuery) => client.nodes(cluster, query),
    [client, cluster]
  );
  return (
    <ServerTable
      load={load}
      label={trans.__('Nodes')}
      columns={hyperpodNodeColumns(trans)}
      sort="instance_group"
      empty={trans.__('This cluster has no nodes.')}
      isShown={isShown}
      trans={trans}
    />
  );
}
