// <message-pane>: the message that is shown, and the toolbar above it. Bubbling events: `act`
// { action: 'delete' | 'unread', ids }; `back` to return to the list; and `read`, once, with the entry as detail, when a message of
// the list is displayed.

/** @import { Messages } from '../lib/messages.js' */
/** @import { Message } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { indexOfEntry } from '../lib/entries.js';
import { icon } from '../lib/icons.js';
import { MessageView } from './message-view.js';

export class MessagePane extends HTMLElement {
  /** The id of the message that is shown or loading. @type {string | null} */
  shown = null;

  /** @type {Messages | null} */
  #messages = null;
  /** Whether the message was in the list at the last update. */
  #wasListed = false;
  /** `read` is dispatched when the message is loaded and listed, in either order. */
  #isLoaded = false;
  #isRead = false;
  #view = new MessageView();
  #position = h('span', { class: 'soft number truncate' });
  #tools = h('div', { class: 'message-tools', role: 'toolbar', 'aria-label': 'Message' });

  constructor() {
    super();
    this.#view.tabIndex = -1;
    this.#view.addEventListener('message-loaded', (event) => {
      this.#isLoaded ||= /** @type {CustomEvent<Message>} */ (event).detail.id === this.shown;
      this.#dispatchRead();
    });
    fill(
      this.#tools,
      h('button', { class: 'button plain back', type: 'button', onclick: () => this.dispatchEvent(new Event('back', { bubbles: true })) }, icon('back'), 'Back'),
      this.#position,
      h('span', { class: 'spread' }),
      h('button', { class: 'button plain', type: 'button', title: 'Mark as unread (u)', onclick: () => this.#act('unread') }, icon('envelope'), 'Mark unread'),
      h('button', { class: 'button plain danger', type: 'button', title: 'Delete (Del)', onclick: () => this.#act('delete') }, icon('trash'), 'Delete'),
    );
  }

  connectedCallback() {
    fill(this, this.#tools, this.#view);
  }

  /**
   * Shows a message, or none if `id` is null.
   * @param {Messages} messages The messages of its mailbox.
   * @param {string | null} id
   */
  show(messages, id) {
    this.shown = id;
    this.#wasListed = this.#isLoaded = this.#isRead = false;
    this.#tools.hidden = id === null;
    if (id === null) this.#view.clear();
    else this.#view.show(messages.mailbox, id);
    this.update(messages);
  }

  /**
   * Updates the position of the message in the list. The actions are disabled if it is not in the list.
   * @param {Messages} messages
   */
  update(messages) {
    this.#messages = messages;
    const index = this.shown === null ? -1 : indexOfEntry(messages.entries, this.shown);
    const isListed = index >= 0;
    // It left the list: loading it again shows whether it was deleted.
    if (this.#wasListed && !isListed && this.shown !== null) this.#view.show(messages.mailbox, this.shown);
    this.#wasListed = isListed;
    this.#tools.classList.toggle('idle', !isListed);
    this.#position.textContent = isListed ? `${count(index + 1)} of ${count(messages.entries.length)}` : '';
    for (const button of this.#tools.querySelectorAll('button:not(.back)')) button.toggleAttribute('disabled', !isListed);
    this.#dispatchRead();
  }

  /** @override */
  focus() {
    this.#view.focus({ preventScroll: true });
  }

  #dispatchRead() {
    const entry = this.#isLoaded && !this.#isRead && this.shown !== null ? this.#messages?.find(this.shown) : undefined;
    if (!entry) return;
    this.#isRead = true;
    this.dispatchEvent(new CustomEvent('read', { bubbles: true, detail: entry }));
  }

  /** @param {'delete' | 'unread'} action */
  #act(action) {
    if (this.shown !== null) this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { action, ids: [this.shown] } }));
  }
}

customElements.define('message-pane', MessagePane);
