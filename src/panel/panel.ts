import { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';

import { hyperPodIcon } from '../icons';
import { LifecycleClient } from '../lifecycle/client';
import { LifecycleLine } from '../lifecycle/line';
import { LifecycleModel } from '../lifecycle/model';
import { IHyperPod } from '../tokens';
import type { IPanelActions } from './actions';
import { ClustersSection } from './clustersSection';
import { PanelHead } from './head';
import { RunsSection } from './runsSection';
import { TimeLimits } from './timeLimits';

/**
 * The side panel: clusters, and the user's runs. Nothing is requested before it is visible.
 */
export class HyperPodPanel extends Panel {
  constructor(hyperPod: IHyperPod, actions: IPanelActions) {
    super();
    const { client, clusters, numbers, regions, runClient, runs, trans } =
      hyperPod;
    this._hyperPod = hyperPod;
    this._limits = new TimeLimits(runClient);
    this.id = 'hyperpod-panel';
    this.addClass('jp-HyperPod-Panel');
    this.title.icon = hyperPodIcon;
    this.title.caption = trans.__('HyperPod clusters and runs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.caption);
    this.addWidget(new PanelHead(actions, trans));
    this.addWidget(
      new LifecycleLine(
        new LifecycleModel(new LifecycleClient(client)),
        () => actions.openLifecycleLog(),
        trans
      )
    );
    this.addWidget(new ClustersSection(clusters, regions, actions, trans));
    this.addWidget(
      new RunsSection(runs, numbers, this._limits, actions, trans)
    );
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._limits.dispose();
      super.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this._look();
    }
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._look();
  }

  private _look(): void {
    // Other plugins may have added their commands since.
    this.widgets.forEach(widget => widget.update());
    void this._hyperPod.adminRights.ask();
  }

  private readonly _hyperPod: IHyperPod;
  private readonly _limits: TimeLimits;
}
