import { ITranslator } from '@jupyterlab/translation';
import { settingsIcon, SidePanel } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { AccordionPanel, Widget } from '@lumino/widgets';

import { ClustersModel } from '../clusters/model';
import { IconButton } from '../components/iconButton';
import { HyperpodSection } from './awsSection';
import { hyperPodIcon } from '../icons';
import { LifecycleClient } from '../lifecycle/client';
import { LifecycleLine } from '../lifecycle/line';
import { LifecycleModel } from '../lifecycle/model';
import { StorageClient } from '../storage/client';
import { StorageSection } from '../storage/section';
import { IHyperPod } from '../tokens';
import { ClustersSection } from './clustersSection';
import { RunsSection } from './runsSection';

/** There are more runs than clusters. */
const SIZES = [1, 1, 2, 1];

/**
 * What the panel's sections do with the application.
 */
export interface IPanelActions {
  openCluster(name: string): void;
  openHyperpodCluster(cluster: string, name: string): void;
  openRun(runId: string): void;
  openDoctor(): void;
  openAdmin(): void;
  openPartition(): void;
  openLifecycleLog(): void;
}

/**
 * The side panel: clusters, and the user's runs.
 */
export class HyperPodPanel extends SidePanel {
  constructor(
    hyperPod: IHyperPod,
    actions: IPanelActions,
    translator: ITranslator
  ) {
    super({ translator });
    const { client, clusterClient, regions, runs, trans } = hyperPod;
    this.id = 'hyperpod-panel';
    this.addClass('jp-HyperPod-Panel');
    this.title.icon = hyperPodIcon;
    this.title.caption = trans.__('HyperPod clusters and runs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.caption);
    this.header.addWidget(
      new LifecycleLine(
        new LifecycleModel(new LifecycleClient(client)),
        () => actions.openLifecycleLog(),
        trans
      )
    );
    this._clusters = new ClustersModel(clusterClient, regions);
    this._hyperPod = hyperPod;
    this.addWidget(new ClustersSection(this._clusters, actions, trans));
    const aws = new HyperpodSection(this._clusters, regions, actions, trans);
    aws.absent.connect(() => this._fold(aws));
    this.addWidget(aws);
    this._offerAdmin(aws, actions);
    this.addWidget(new RunsSection(runs, actions, trans));
    this.addWidget(
      new StorageSection(new StorageClient(client), actions, trans)
    );
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._clusters.dispose();
      super.dispose();
    }
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._start();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._clusters.stop();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this._start();
    }
  }

  /** Nothing is asked for before somebody looks. */
  private _start(): void {
    if (!this._sized && this.content instanceof AccordionPanel) {
      this._sized = true;
      this.content.setRelativeSizes(SIZES);
    }
    this._clusters.start();
    this._hyperPod.runs.start();
    void this._hyperPod.adminRights.ask();
  }

  /** The way to the page for admins, for those with the rights. */
  private _offerAdmin(section: HyperpodSection, actions: IPanelActions): void {
    const { adminRights, trans } = this._hyperPod;
    const offer = () => {
      if (adminRights.offered && !this.isDisposed) {
        adminRights.changed.disconnect(offer);
        section.toolbar.addItem(
          'admin',
          new IconButton(settingsIcon, trans.__('HyperPod Admin'), () =>
            actions.openAdmin()
          )
        );
      }
    };
    adminRights.changed.connect(offer);
    offer();
  }

  /** Leave the room to the other sections; the user may unfold it. */
  private _fold(section: Widget): void {
    if (this.content instanceof AccordionPanel) {
      this.content.collapse(this.content.widgets.indexOf(section));
    }
  }

  private _sized = false;
  private readonly _hyperPod: IHyperPod;
  private readonly _clusters: ClustersModel;
}
