// <message-pane>: the place of the message that is read: what can be done with it, and the message itself. It asks by
// bubbling events: `act` { what: 'delete' | 'unread', ids } and `back`, to the list; and it tells by `read`, with the
// entry as detail, once, that the message of the list is before the reader's eyes.

/** @import { Messages } from '../lib/messages.js' */
/** @import { Message } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { placeOf } from '../lib/entries.js';
import { icon } from '../lib/icons.js';
import { MessageView } from './message-view.js';

export class MessagePane extends HTMLElement {
  /** The id of the message that is shown, or looked for. @type {string | null} */
  shown = null;

  /** @type {Messages | null} */
  #messages = null;
  /** Whether it was in the list when that was looked at last. */
  #wasThere = false;
  /** The message is loaded, and it is told that it is read: either it or the list may be there first. */
  #isLoaded = false;
  #isRead = false;
  #view = new MessageView();
  #place = h('span', { class: 'soft number cut' });
  #tools = h('div', { class: 'message-tools', role: 'toolbar', 'aria-label': 'Message' });

  constructor() {
    super();
    this.#view.tabIndex = -1;
    this.#view.addEventListener('message-loaded', (event) => {
      this.#isLoaded ||= /** @type {CustomEvent<Message>} */ (event).detail.id === this.shown;
      this.#tellRead();
    });
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
   * @param {Messages} messages Where it is.
   * @param {string | null} id
   */
  show(messages, id) {
    this.shown = id;
    this.#wasThere = this.#isLoaded = this.#isRead = false;
    this.#tools.hidden = id === null;
    if (id === null) this.#view.clear();
    else this.#view.show(messages.mailbox, id);
    this.update(messages);
  }

  /**
   * Looks where in the list the message stands; what can be done with it can be done only there.
   * @param {Messages} messages
   */
  update(messages) {
    this.#messages = messages;
    const place = this.shown === null ? -1 : placeOf(messages.entries, this.shown);
    const isThere = place >= 0;
    // It seems to be gone: whoever asks for it once more will hear so.
    if (this.#wasThere && !isThere && this.shown !== null) this.#view.show(messages.mailbox, this.shown);
    this.#wasThere = isThere;
    this.#tools.classList.toggle('idle', !isThere);
    this.#place.textContent = isThere ? `${count(place + 1)} of ${count(messages.entries.length)}` : '';
    for (const button of this.#tools.querySelectorAll('button:not(.back)')) button.toggleAttribute('disabled', !isThere);
    this.#tellRead();
  }

  /** @override */
  focus() {
    this.#view.focus({ preventScroll: true });
  }

  #tellRead() {
    const entry = this.#isLoaded && !this.#isRead && this.shown !== null ? this.#messages?.find(this.shown) : undefined;
    if (!entry) return;
    this.#isRead = true;
    this.dispatchEvent(new CustomEvent('read', { bubbles: true, detail: entry }));
  }

  /** @param {'delete' | 'unread'} what */
  #act(what) {
    if (this.shown !== null) this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { what, ids: [this.shown] } }));
  }
}

customElements.define('message-pane', MessagePane);
