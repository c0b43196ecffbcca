import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Tabs } from '../components/tabs';
import { WatchingPage } from '../components/watchingWidget';
import type { INodeClient } from '../nodes/client';
import type { IHyperpodClient } from './client';
import type { IEventClient } from './eventClient';
import { EventsTable } from './eventsTable';
import { GovernanceTab } from './governance';
import { HyperpodNodes } from './nodesTable';
import { Overview } from './overview';
import { IHyperpodDetail } from './types';
import { Watched } from './watched';

const TABS = ['overview', 'nodes', 'events', 'governance'] as const;
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
  export interface IOptions {
    cluster: string;
    client: IHyperpodClient;
    /** Requests that do something to its nodes. */
    nodeClient: INodeClient;
    /** Open a terminal on one of its instances. */
    openTerminal: (instance: string) => void;
    /** Open the logs of one of its instances. */
    openLogs: (instance: string) => void;
    /** Requests on its events. */
    eventClient: IEventClient;
    /** Open its metrics. */
    showMetrics: () => void;
    trans: TranslationBundle;
  }
}

type IProps = HyperpodPage.IOptions & {
  watched: Watched<IHyperpodDetail>;
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
      <h1>{watched.value?.name ?? cluster}</h1>
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
  const { tab, trans, watched } = props;
  switch (tab) {
    case 'nodes':
      return <HyperpodNodes {...props} />;
    case 'events':
      return <EventsTable {...props} client={props.eventClient} />;
    case 'governance':
      return <GovernanceTab {...props} />;
    default:
      return (
        <Overview
          cluster={watched}
          showMetrics={props.showMetrics}
          trans={trans}
        />
      );
  }
}
