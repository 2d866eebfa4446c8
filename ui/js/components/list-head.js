// <list-head>: the head of a list of messages: its name and counts, and the buttons for the whole list. They dispatch the bubbling
// events `pause`, `read-all`, `delete-all` and `toggle-sidebar`.

/** @import { ListDescription } from '../lib/list-description.js' */

import * as notifications from '../lib/notifications.js';
import { fill, h, set } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

export class ListHead extends HTMLElement {
  #name = h('h1', { class: 'list-name truncate', tabindex: -1 });
  #state = h('span', { class: 'live-state', role: 'status' });
  #counts = h('span', { class: 'list-counts number' });
  #sidebar = this.#button('mailboxes', 'Mailboxes', 'toggle-sidebar');
  #pause = this.#button('pause', 'Pause', 'pause');
  #readAll = this.#button('checks', 'Mark all as read', 'read-all');
  #bell = h('button', { class: 'button plain bell', type: 'button', 'aria-label': 'Desktop notifications of new messages' }, icon('bell'));
  #deleteAll = this.#button('trash', 'Delete all messages', 'delete-all');

  connectedCallback() {
    if (!this.firstChild) {
      this.#sidebar.classList.add('sidebar-toggle');
      set(this.#sidebar, { 'aria-expanded': 'false', 'aria-controls': 'mailbox-sidebar' });
      fill(this, this.#sidebar, h('div', { class: 'list-words' }, this.#name, h('p', { class: 'list-facts soft' }, this.#state, this.#counts)),
        h('div', { class: 'list-buttons' }, this.#pause, this.#readAll, this.#bell, this.#deleteAll));
      this.#bell.onclick = async () => this.#drawBell(await notifications.toggle());
    }
    this.#drawBell(notifications.areEnabled());
  }

  /** @override */
  focus() {
    this.#name.focus({ preventScroll: true });
  }

  /** @param {boolean} isOpen */
  showSidebarState(isOpen) {
    this.#sidebar.ariaExpanded = String(isOpen);
  }

  focusSidebarButton() {
    this.#sidebar.focus();
  }

  /** @param {ListDescription & { isLost: boolean }} list `isLost` is true if there is no connection. */
  show({ title, total, unread, isMore, isListed, isPaused, waiting, isLost }) {
    const name = visible(title);
    if (this.#name.title !== name) fill(this.#name, h('bdi', {}, name));
    this.#name.title = name;
    const messages = total === null ? '' : total === 0 ? 'No messages' : `${isMore ? `${count(total)}+ messages` : plural(total, 'message')}`;
    const unreadText = unread === null || total === 0 ? '' : `, ${unread === 0 ? 'none' : count(unread)} unread`;
    // The placeholder keeps the height until the counts are loaded.
    this.#counts.textContent = `${messages}${unreadText}` || '\u00a0';
    const [words, kind] = isLost ? ['Connection lost', 'lost'] : isPaused ? [waiting ? `Paused, ${count(waiting)} new` : 'Paused', 'paused'] : isListed ? ['Live', 'live'] : ['', ''];
    if (this.#state.textContent !== words) this.#state.textContent = words;
    this.#state.dataset.state = kind;
    this.#drawPause(isPaused);
    this.#deleteAll.disabled = !isListed || total === 0;
    this.#readAll.disabled = !isListed || total === 0 || unread === 0;
  }

  /** @param {boolean} isPaused */
  #drawPause(isPaused) {
    if (this.#pause.dataset.paused === String(isPaused)) return;
    this.#pause.dataset.paused = String(isPaused);
    const label = isPaused ? 'Resume' : 'Pause';
    set(this.#pause, { title: `${label} (p)`, 'aria-label': label });
    fill(this.#pause, icon(isPaused ? 'play' : 'pause'));
  }

  /** @param {boolean} areEnabled */
  #drawBell(areEnabled) {
    this.#bell.ariaPressed = String(areEnabled);
    this.#bell.title = areEnabled ? 'Desktop notifications of new messages are on' : 'Show desktop notifications of new messages';
  }

  /**
   * @param {'mailboxes' | 'pause' | 'checks' | 'trash'} name
   * @param {string} label
   * @param {string} event
   */
  #button(name, label, event) {
    return h('button', { class: 'button plain', type: 'button', 'aria-label': label, title: label, onclick: () => this.dispatchEvent(new Event(event, { bubbles: true })) }, icon(name));
  }
}

customElements.define('list-head', ListHead);
