import { LabIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

/**
 * A native button with an icon, for the toolbar of a panel's section.
 */
export class IconButton extends Widget {
  /**
   * @param icon - what it shows
   * @param label - what it says
   * @param act - what it does
   */
  constructor(icon: LabIcon, label: string, act: () => void) {
    const button = document.createElement('button');
    super({ node: button });
    this.addClass('jp-HyperPod-IconButton');
    button.type = 'button';
    button.title = label;
    button.setAttribute('aria-label', label);
    button.onclick = act;
    icon.element({ container: button, elementSize: 'normal' });
  }
}
