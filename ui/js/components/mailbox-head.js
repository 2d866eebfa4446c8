// <mailbox-head>: the head of a list of messages: the name of the mailbox, its counts, the button for desktop notifications, and
// the button that empties the mailbox by the event `purge`.

import * as notifications from '../lib/notifications.js';
import { fill, h } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

export class MailboxHead extends HTMLElement {
  #name = h('h1', { class: 'mailbox-name truncate', tabindex: -1 });
  #counts = h('p', { class: 'mailbox-counts soft number' });
  #bell = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Desktop notifications of new messages' }, icon('bell'));
  #purge = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Delete all messages', title: 'Delete all messages' }, icon('trash'));

  connectedCallback() {
    fill(this, h('div', { class: 'mailbox-words' }, this.#name, this.#counts), h('div', { class: 'row' }, this.#bell, this.#purge));
    this.#bell.onclick = async () => this.#drawBell(await notifications.toggle());
    this.#purge.onclick = () => this.dispatchEvent(new Event('purge', { bubbles: true }));
    this.#drawBell(notifications.areEnabled());
  }

  /** @override */
  focus() {
    this.#name.focus({ preventScroll: true });
  }

  /**
   * @param {string} mailbox
   * @param {{ all: number, unread: number, isKnown: boolean, isMore: boolean }} counts
   */
  show(mailbox, { all, unread, isKnown, isMore }) {
    const name = visible(mailbox);
    if (this.#name.title !== name) fill(this.#name, h('bdi', {}, name));
    this.#name.title = name;
    const words = all === 0 && !isMore ? 'No messages' : `${plural(all, 'message')}${isMore ? ' so far' : ''}, ${unread === 0 ? 'none' : count(unread)} unread`;
    // The placeholder keeps the height until the counts are loaded.
    this.#counts.textContent = isKnown ? words : '\u00a0';
    this.#purge.disabled = all === 0;
  }

  /** @param {boolean} areEnabled */
  #drawBell(areEnabled) {
    this.#bell.ariaPressed = String(areEnabled);
    this.#bell.title = areEnabled ? 'Desktop notifications of new messages are on' : 'Show desktop notifications of new messages';
  }
}

customElements.define('mailbox-head', MailboxHead);
