// <message-pane>: the message that is shown, and the toolbar above it. Bubbling events: `act`
// { action: 'delete' | 'unread', ids }; `step` { by: 1 | -1 } to the next or previous message; `back` to return to the list; and
// `read`, once, with the entry as detail, when a message of the list is displayed.

/** @import { Messages } from '../lib/messages.js' */
/** @import { RelayTarget, ShownMessage } from '../types.js' */
/** @import { IconName } from '../lib/icons.js' */

import * as connection from '../lib/connection.js';
import * as relay from '../lib/relay.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { compare, indexOfEntry } from '../lib/entries.js';
import { icon } from '../lib/icons.js';
import { menuButton } from './menu-button.js';
import { downloads } from './message/downloads.js';
import { testMenu } from './message/test-code.js';
import { MessageView } from './message-view.js';
import { openReleaseDialog } from './release-dialog.js';

export class MessagePane extends HTMLElement {
  /** The id of the message that is shown or loading. @type {string | null} */
  shown = null;

  /** @type {Messages | null} */
  #messages = null;
  /** The message that is displayed. @type {ShownMessage | null} */
  #message = null;
  /** True if the message could not be loaded. */
  #hasFailed = false;
  /** Whether the message was in the list at the last update. */
  #wasListed = false;
  #isRead = false;
  /** The targets of the relay. Without any, messages cannot be released. @type {RelayTarget[]} */
  #targets = [];
  #disconnected = new AbortController();
  #view = new MessageView();
  #position = h('span', { class: 'message-position soft number' });
  #previous = tool('previous', 'Previous message (k)', 'Previous message', () => this.#dispatch('step', { by: -1 }));
  #next = tool('next', 'Next message (j)', 'Next message', () => this.#dispatch('step', { by: 1 }));
  #test = menuButton({ class: 'button plain', title: 'Copy as test' }, label('code', 'Copy as test'), () => (this.#message ? testMenu(this.#message) : []));
  #download = menuButton({ class: 'button plain', title: 'Download' }, label('download', 'Download'), () => (this.#message ? downloads(this.#message) : []));
  #release = tool('send', 'Release to a real mailbox', 'Release…', () => this.#openReleaseDialog(), true);
  #unread = tool('envelope', 'Mark as unread (u)', 'Mark unread', () => this.#act('unread'), true);
  #delete = tool('trash', 'Delete (Del)', 'Delete', () => this.#act('delete'), true);
  #tools = h('div', { class: 'message-tools', role: 'toolbar', 'aria-label': 'Message' });

  constructor() {
    super();
    this.#view.tabIndex = -1;
    this.#view.addEventListener('message-loaded', (event) => {
      const message = /** @type {CustomEvent<ShownMessage | null>} */ (event).detail;
      if (message !== null && message.id !== this.shown) return;
      this.#message = message;
      this.#hasFailed = message === null;
      this.#drawActions();
      this.#dispatchRead();
    });
    this.#delete.classList.add('danger');
    const back = h('button', { class: 'button plain back', type: 'button', onclick: () => this.#dispatch('back') }, icon('back'), 'Back');
    fill(this.#tools, back, this.#previous, this.#next, this.#position, h('span', { class: 'spread' }), this.#test.root, this.#download.root, this.#release, this.#unread, this.#delete);
  }

  connectedCallback() {
    fill(this, this.#tools, this.#view);
    this.#disconnected = new AbortController();
    this.#loadTargets();
    connection.changes.addEventListener('change', () => connection.isLost() || this.#loadTargets(), { signal: this.#disconnected.signal });
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  async #loadTargets() {
    this.#targets = await relay.targets();
    this.#drawActions();
  }

  /**
   * Shows a message, or none if `id` is null.
   * @param {Messages} messages The list that contains it.
   * @param {string | null} id The id of the message, or of a copy.
   * @param {{ total: number | null, isMore: boolean }} counts
   */
  show(messages, id, counts) {
    this.shown = id;
    this.#message = null;
    this.#hasFailed = this.#wasListed = this.#isRead = false;
    this.#tools.hidden = id === null;
    this.#drawActions();
    if (id === null) this.#view.clear();
    else this.#view.show(id, messages.scope.mailbox === null ? messages.find(id)?.summary : undefined);
    this.update(messages, counts);
  }

  /** Loads the message again, because its tags have changed. */
  reload() {
    if (this.shown !== null) this.#view.show(this.shown);
  }

  /**
   * Updates the position of the message in the list. It may have left the list, for example that of unread messages; the next
   * and the previous message are then those next to its place.
   * @param {Messages} messages
   * @param {{ total: number | null, isMore: boolean }} counts
   */
  update(messages, { total, isMore }) {
    this.#messages = messages;
    const { entries } = messages;
    const index = this.shown === null ? -1 : indexOfEntry(entries, this.shown);
    const isListed = index >= 0;
    // It left the list: loading it again shows whether it was deleted.
    if (this.#wasListed && !isListed && this.shown !== null) this.#view.show(this.shown);
    this.#wasListed = isListed;
    this.#position.textContent = isListed ? total === null ? count(index + 1) : `${count(index + 1)} of ${count(total)}${isMore ? '+' : ''}` : '';
    const [newest, oldest] = [entries.at(0), entries.at(-1)];
    disable(this.#previous, this.shown === null || !newest || compare(newest.id, this.shown) <= 0);
    disable(this.#next, this.shown === null || !oldest || (compare(oldest.id, this.shown) >= 0 && messages.isComplete));
    this.#dispatchRead();
  }

  /** @override */
  focus() {
    this.#view.focus({ preventScroll: true });
  }

  /** A message that could not be loaded has no actions. Those that need only its id can be used while it is loading. */
  #drawActions() {
    for (const { button } of [this.#test, this.#download]) button.disabled = this.#message === null;
    this.#release.hidden = this.#targets.length === 0;
    for (const button of [this.#release, this.#unread, this.#delete]) button.disabled = this.#hasFailed;
  }

  #openReleaseDialog() {
    if (this.shown !== null && this.#messages) openReleaseDialog(this.shown, this.#messages.scope.mailbox, this.#targets, this.#message);
  }

  /** Leaves the message unread, because the user has marked it as unread. It may be listed only afterwards. */
  keepUnread() {
    this.#isRead = true;
  }

  /** `read` is dispatched when the message is loaded and listed, in either order. */
  #dispatchRead() {
    const entry = this.#message && !this.#isRead && this.shown !== null ? this.#messages?.find(this.shown) : undefined;
    if (!entry) return;
    this.#isRead = true;
    this.#dispatch('read', entry);
  }

  /** @param {'delete' | 'unread'} action */
  #act(action) {
    if (this.shown !== null) this.#dispatch('act', { action, ids: [this.shown] });
  }

  /**
   * @param {string} name
   * @param {unknown} [detail]
   */
  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

/**
 * A button of the toolbar. Its words are hidden if there is no room.
 * @param {IconName} name
 * @param {string} title
 * @param {string} words
 * @param {() => void} run
 * @param {boolean} [hasWords] False if only the icon is shown.
 */
function tool(name, title, words, run, hasWords = false) {
  const button = h('button', { class: 'button plain', type: 'button', title, onclick: () => button.getAttribute('aria-disabled') !== 'true' && run() });
  if (hasWords) fill(button, ...label(name, words));
  else fill(button, icon(name), h('span', { class: 'hidden' }, words));
  return button;
}

/**
 * @param {IconName} name
 * @param {string} words
 */
function label(name, words) {
  return [icon(name), h('span', { class: 'tool-words' }, words)];
}

/**
 * Not `disabled`, so that a button at the end of the list keeps the focus.
 * @param {HTMLElement} button
 * @param {boolean} isDisabled
 */
function disable(button, isDisabled) {
  button.setAttribute('aria-disabled', String(isDisabled));
}

customElements.define('message-pane', MessagePane);
