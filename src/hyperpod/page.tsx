import * as React from 'react';

import { INodesTable, NodesTable } from '../clusters/nodesTable';
import type { IClusterDetail } from '../clusters/types';
import { Tabs } from '../components/tabs';
import { Watched } from '../components/watched';
import { WatchingPage } from '../components/watchingWidget';
import type { IEventClient } from './eventClient';
import { EventsTable } from './eventsTable';
import { GovernanceTab } from './governance';
import { Overview } from './overview';

const TABS = ['overview', 'nodes', 'events', 'governance'] as const;
type Tab = (typeof TABS)[number];

/**
 * A HyperPod cluster in the main area, as AWS knows it. Nothing is asked for while it is hidden.
 */
export class HyperpodPage extends WatchingPage<Watched<IClusterDetail>> {
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
      <ClusterTabs
        {...this._options}
        watched={this.watched}
        isShown={this._isShown}
      />
    );
  }

  private readonly _isShown = () => this.isVisible && !document.hidden;
  private readonly _options: HyperpodPage.IOptions;
}

export namespace HyperpodPage {
  export interface IOptions extends INodesTable {
    /** Requests on its events. */
    eventClient: IEventClient;
    /** Open its metrics. */
    showMetrics: () => void;
  }
}

type IProps = HyperpodPage.IOptions & {
  watched: Watched<IClusterDetail>;
  isShown: () => boolean;
};

function ClusterTabs(props: IProps): JSX.Element {
  const { cluster, trans, watched } = props;
  const labels: Readonly<Record<Tab, string>> = {
    overview: trans.__('Overview'),
    nodes: trans.__('Nodes'),
    events: trans.__('Events'),
    governance: trans.__('Task governance')
  };
  return (
    <>
      <h1>{watched.value?.cluster.hyperpod?.name ?? cluster}</h1>
      <Tabs
        label={trans.__('Cluster views')}
        tabs={TABS.map(name => ({ name, label: labels[name] }))}
      >
        {tab => <TabContent {...props} tab={tab} />}
      </Tabs>
    </>
  );
}

/** What is in a tab. Only that is asked for, and is in the page. */
function TabContent(props: IProps & { tab: Tab }): JSX.Element {
  switch (props.tab) {
    case 'nodes':
      return <NodesTable {...props} />;
    case 'events':
      return <EventsTable {...props} client={props.eventClient} />;
    case 'governance':
      return <GovernanceTab {...props} />;
    default:
      return <Overview {...props} />;
  }
}
