// <mailbox-head>: what stands above a list of messages: the name of the mailbox, how much there is in it, desktop notices
// and the way to empty it, which it asks for by the event `purge`.

import * as notices from '../lib/notices.js';
import { fill, h } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

export class MailboxHead extends HTMLElement {
  #name = h('h1', { class: 'mailbox-name cut', tabindex: -1 });
  #counts = h('p', { class: 'mailbox-counts soft number' });
  #bell = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Desktop notices of new mail' }, icon('bell'));
  #purge = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Delete all messages', title: 'Delete all messages' }, icon('trash'));

  connectedCallback() {
    fill(this, h('div', { class: 'mailbox-words' }, this.#name, this.#counts), h('div', { class: 'row' }, this.#bell, this.#purge));
    this.#bell.onclick = async () => this.#drawBell(await notices.toggle());
    this.#purge.onclick = () => this.dispatchEvent(new Event('purge', { bubbles: true }));
    this.#drawBell(notices.areOn());
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
    // Something stands there from the beginning, so that nothing moves when the numbers come.
    this.#counts.textContent = isKnown ? words : '\u00a0';
    this.#purge.disabled = all === 0;
  }

  /** @param {boolean} areOn */
  #drawBell(areOn) {
    this.#bell.ariaPressed = String(areOn);
    this.#bell.title = areOn ? 'Desktop notices of new mail are on' : 'Tell me of new mail on the desktop';
  }
}

customElements.define('mailbox-head', MailboxHead);
