import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';

import { HyperPodClient } from '../api';
import { LogSocket, LogView } from '../logs';
import type { Preferences } from '../settings';
import { NodeLogClient } from './client';
import { NodeLogHeader } from './header';
import { kindText } from './words';

/**
 * The logs of a node of a HyperPod cluster in the main area, in the viewer of runs' logs. CloudWatch is asked while they are seen only.
 */
export class NodeLogPage extends Panel {
  constructor(options: NodeLogPage.IOptions) {
    super();
    const { client, cluster, node, preferences, socket, trans } = options;
    this.addClass('jp-HyperPod-NodeLogPage');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Logs of %1', node));
    this.cluster = cluster;
    this.instance = node;
    this._client = new NodeLogClient(client, socket, cluster, node);
    this.log = new LogView({
      client: this._client,
      runId: node,
      preferences,
      isDated: true,
      labelOf: origin => kindText(this._client.kindOf(origin.node), trans),
      trans
    });
    this._header = new NodeLogHeader({
      client: this._client,
      cluster,
      node,
      choose: stream => void this._choose(stream),
      trans
    });
    document.addEventListener('visibilitychange', this._onVisibility);
  }

  readonly cluster: string;
  /** The node, as it was asked for. */
  readonly instance: string;
  readonly log: LogView;

  override dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this._onVisibility);
      super.dispose();
      this._header.dispose();
      this.log.dispose();
      this._client.dispose();
    }
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.log.activate();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this._show();
    }
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._show();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.log.model.feed.suspend();
  }

  private readonly _onVisibility = (): void => {
    if (document.hidden) {
      this.log.model.feed.suspend();
    } else if (this.isVisible) {
      this._show();
    }
  };

  /** What was never seen has asked for nothing yet. */
  private _show(): void {
    if (this.log.parent === null) {
      this.addWidget(this._header);
      this.addWidget(this.log);
    } else {
      void this.log.model.feed.resume();
    }
  }

  private async _choose(stream: string | null): Promise<void> {
    this._client.chosen = stream;
    await this.log.model.search.find('');
    await this.log.model.feed.choose({});
  }

  private readonly _client: NodeLogClient;
  private readonly _header: NodeLogHeader;
}

export namespace NodeLogPage {
  export interface IOptions {
    client: HyperPodClient;
    cluster: string;
    node: string;
    socket: LogSocket;
    /** How the log looks at first. */
    preferences?: Preferences;
    trans: TranslationBundle;
  }
}
