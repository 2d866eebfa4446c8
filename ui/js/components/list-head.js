// <list-head>: the head of a list of messages: its name and counts, and the actions for the whole list. They dispatch the bubbling
// events `pause`, `read-all`, `delete-all`, `save-search` and `toggle-sidebar`.

/** @import { ListDescription } from '../lib/list-description.js' */
/** @import { IconName } from '../lib/icons.js' */

import * as notifications from '../lib/notifications.js';
import { fill, h, set } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { projects } from '../lib/projects.js';
import { visible } from '../lib/visible.js';
import { menuButton } from './menu-button.js';

export class ListHead extends HTMLElement {
  #name = h('h1', { class: 'list-name truncate', tabindex: -1 });
  #state = h('span', { class: 'live-state', role: 'status' });
  #total = h('span', { class: 'list-total number' });
  #unread = h('span', { class: 'list-unread number' });
  #sidebar = this.#button('mailboxes', 'Mailboxes and tags', 'toggle-sidebar');
  #save = this.#button('bookmark', 'Save this search', 'save-search');
  #pause = this.#button('pause', 'Pause', 'pause');
  #readAll = this.#button('checks', 'Mark all as read', 'read-all');
  #canDelete = false;
  #more = menuButton({ class: 'button plain', title: 'More actions' }, [icon('more')], () => [
    { label: notifications.areEnabled() ? 'Turn off desktop notifications' : 'Turn on desktop notifications', run: notifications.toggle },
    { label: 'Delete all messages…', disabled: !this.#canDelete, run: () => this.#dispatch('delete-all') },
  ]);

  connectedCallback() {
    if (this.firstChild) return;
    this.#sidebar.classList.add('sidebar-toggle');
    set(this.#sidebar, { 'aria-expanded': 'false', 'aria-controls': 'mailbox-sidebar' });
    fill(this, this.#sidebar, this.#name, h('p', { class: 'list-facts soft' }, this.#state, this.#total, this.#unread),
      h('div', { class: 'list-buttons' }, this.#save, this.#pause, this.#readAll, this.#more.root));
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

  /** @param {ListDescription & { isLost: boolean, isSaved: boolean | null }} list `isLost` is true if there is no connection; `isSaved` is null if the list is not a search. */
  show({ title, total, unread, isMore, isListed, isPaused, waiting, isLost, isSaved }) {
    const name = visible(title);
    const place = projects.current === null ? '' : ` · ${projects.current}`;
    if (this.#name.title !== name + place) fill(this.#name, h('bdi', {}, name), place !== '' && h('span', { class: 'soft' }, place));
    this.#name.title = name + place;
    this.#total.textContent = total === null ? '' : total === 0 ? 'No messages' : isMore ? `${count(total)}+ messages` : plural(total, 'message');
    this.#unread.textContent = unread === null || total === 0 ? '' : `${unread === 0 ? 'none' : count(unread)} unread`;
    const [words, kind] = isLost ? ['Connection lost', 'lost'] : isPaused ? [waiting ? `Paused, ${count(waiting)} new` : 'Paused', 'paused'] : isListed ? ['Live', 'live'] : ['', ''];
    if (this.#state.textContent !== words) fill(this.#state, words !== '' && h('span', { class: 'live-words' }, words));
    set(this.#state, { 'data-state': kind, title: words });
    this.#drawPause(isPaused);
    this.#canDelete = isListed && total !== 0;
    this.#readAll.disabled = !isListed || total === 0 || unread === 0;
    this.#save.hidden = isSaved === null;
    this.#save.disabled = isSaved === true;
  }

  /** @param {boolean} isPaused */
  #drawPause(isPaused) {
    if (this.#pause.dataset.paused === String(isPaused)) return;
    this.#pause.dataset.paused = String(isPaused);
    const label = isPaused ? 'Resume' : 'Pause';
    set(this.#pause, { title: `${label} (p)`, 'aria-label': label });
    fill(this.#pause, icon(isPaused ? 'play' : 'pause'));
  }

  /**
   * @param {IconName} name
   * @param {string} label
   * @param {string} event
   */
  #button(name, label, event) {
    return h('button', { class: 'button plain', type: 'button', 'aria-label': label, title: label, onclick: () => this.#dispatch(event) }, icon(name));
  }

  /** @param {string} event */
  #dispatch(event) {
    this.dispatchEvent(new Event(event, { bubbles: true }));
  }
}

customElements.define('list-head', ListHead);
