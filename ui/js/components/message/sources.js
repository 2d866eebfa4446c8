// <message-sources>: the source of a message or, if it has HTML and the user selects that, the decoded HTML.

/** @import { Message } from '../../types.js' */

import { fill, h } from '../../lib/dom.js';
import { choice } from './controls.js';
import { MessageHtmlSource } from './html-source.js';
import { MessageSource } from './source.js';

/** @typedef {'message' | 'html'} Kind */

export class MessageSources extends HTMLElement {
  #message;
  /** @type {Partial<Record<Kind, MessageSource | MessageHtmlSource>>} */
  #panels = {};
  #others = h('span', { class: 'controls' });
  /** The controls of this panel. @type {HTMLElement[]} */
  controls = [this.#others];

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
    if (!message.html) {
      this.#show('message');
      return;
    }
    const kinds = choice('Source', /** @type {{ value: Kind, label: string, icon: 'envelope' | 'code' }[]} */ ([
      { value: 'message', label: 'Source of the message', icon: 'envelope' },
      { value: 'html', label: 'Decoded HTML', icon: 'code' },
    ]), { pref: 'source.kind', apply: (kind) => this.#show(kind) });
    this.controls = [kinds, this.#others];
  }

  /** @param {Kind} kind */
  #show(kind) {
    const panel = (this.#panels[kind] ??= kind === 'html' ? new MessageHtmlSource(this.#message) : new MessageSource(this.#message));
    fill(this, panel);
    fill(this.#others, panel.controls);
  }
}

customElements.define('message-sources', MessageSources);
