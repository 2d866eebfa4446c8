// <message-pane>: the place of the message that is read: what can be done with it, and the message itself. It asks by
// bubbling events: `act` { what: 'delete' | 'unread', ids } and `back`, to the list.

import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { MessageView } from './message-view.js';

export class MessagePane extends HTMLElement {
  /** The id of the message that is shown, or looked for. @type {string | null} */
  shown = null;

  #view = new MessageView();
  #place = h('span', { class: 'soft number cut' });
  #tools = h('div', { class: 'message-tools', role: 'toolbar', 'aria-label': 'Message' });

  constructor() {
    super();
    this.#view.tabIndex = -1;
    fill(
      this.#tools,
      h('button', { class: 'button plain back', type: 'button', onclick: () => this.dispatchEvent(new Event('back', { bubbles: true })) }, icon('back'), 'Back'),
      this.#place,
      h('span', { class: 'spread' }),
      h('button', { class: 'button plain', type: 'button', title: 'Mark as unread (u)', onclick: () => this.#act('unread') }, icon('envelope'), 'Mark unread'),
      h('button', { class: 'button plain danger', type: 'button', title: 'Delete (Del)', onclick: () => this.#act('delete') }, icon('trash'), 'Delete'),
    );
  }

  connectedCallback() {
    fill(this, this.#tools, this.#view);
  }

  /**
   * Shows a message, or none.
   * @param {string} mailbox
   * @param {string | null} id
   */
  show(mailbox, id) {
    this.shown = id;
    if (id === null) this.#view.clear();
    else this.#view.show(mailbox, id);
  }

  /**
   * Looks for the message once more, because it seems to be gone.
   * @param {string} mailbox
   */
  lookAgain(mailbox) {
    this.#view.clear();
    this.show(mailbox, this.shown);
  }

  /**
   * Tells where in the list the message stands; what can be done with it can be done only there.
   * @param {number} place Below 0 when it is not in the list.
   * @param {number} all
   */
  stands(place, all) {
    const isThere = place >= 0;
    this.#tools.classList.toggle('idle', !isThere);
    this.#place.textContent = isThere ? `${count(place + 1)} of ${count(all)}` : '';
    for (const button of this.#tools.querySelectorAll('button:not(.back)')) button.toggleAttribute('disabled', !isThere);
  }

  /** @override */
  focus() {
    this.#view.focus({ preventScroll: true });
  }

  /** @param {'delete' | 'unread'} what */
  #act(what) {
    if (this.shown !== null) this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { what, ids: [this.shown] } }));
  }
}

customElements.define('message-pane', MessagePane);
