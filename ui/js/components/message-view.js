// <message-view>: one message: headline, code, problems and tabs. It loads the message, caches the last ones, and dispatches
// `message-loaded`, which bubbles, for each message that it shows. The list and the toolbar (back, unread, delete) are not
// part of it.

/** @import { Message } from '../types.js' */
/** @import { IconName } from '../lib/icons.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import { fill, h, set } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { code, mostLikely } from './message/code.js';
import { defects } from './message/defects.js';
import { headline } from './message/headline.js';
import { MessageCache } from './message/message-cache.js';
import { MessageTabs } from './message/tabs.js';

/** The delay before a loading message is indicated, in milliseconds. */
const LOADING_DELAY_MS = 200;

const cache = new MessageCache();

export class MessageView extends HTMLElement {
  /** @type {{ mailbox: string, id: string } | null} */
  #wanted = null;
  /** The message that is shown; null if a hint is shown. @type {Message | null} */
  #message = null;
  #request = new AbortController();
  #disconnected = new AbortController();
  /** True if the view shows that the message could not be loaded. */
  #hasFailed = false;
  #tabs = new MessageTabs();
  #head = h('div', { class: 'message-head' });
  #sheet = h('article', { class: 'message', 'aria-label': 'Message' }, this.#head, this.#tabs);

  connectedCallback() {
    this.#disconnected = new AbortController();
    connection.changes.addEventListener('change', () => this.#hasFailed && !connection.isLost() && this.#load(), { signal: this.#disconnected.signal });
    if (this.#wanted) this.#load();
    else this.clear();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#request.abort();
    this.#setBusy(false);
  }

  /**
   * Shows a message; the previous one stays until it is loaded. A message that is already shown is loaded again, because it may
   * have been deleted.
   * @param {string} mailbox
   * @param {string} id
   */
  show(mailbox, id) {
    this.#wanted = { mailbox, id };
    if (this.isConnected) this.#load();
  }

  /** Shows that no message is selected. */
  clear() {
    this.#request.abort();
    this.#wanted = null;
    this.#setBusy(false);
    this.#hint('envelope', 'No message selected', h('p', {}, 'Select a message in the list to see its HTML, text, headers, parts and source.'));
  }

  /** Loads the wanted message and cancels the previous request. */
  async #load() {
    const wanted = this.#wanted;
    if (!wanted) return;
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;

    // A cached message is shown at once and still loaded: it does not change, but it may have been deleted.
    const cached = cache.get(wanted.mailbox, wanted.id);
    if (cached && !this.#isShown(wanted)) this.#draw(cached);
    const slow = setTimeout(() => !this.#isShown(wanted) && !signal.aborted && this.#setBusy(true), LOADING_DELAY_MS);
    try {
      // The code is loaded together with the message, so that the layout does not move. Its errors are ignored.
      const code = cached ? cached.code : api.codes(wanted.mailbox, wanted.id, signal).then(mostLikely, () => null);
      const message = { ...(await api.message(wanted.mailbox, wanted.id, signal)), code: await code };
      if (signal.aborted) return;
      cache.put(message);
      if (!this.#isShown(wanted)) this.#draw(message);
    } catch (error) {
      if (!signal.aborted) this.#failed(wanted, error);
    } finally {
      clearTimeout(slow);
    }
  }

  /** @param {{ mailbox: string, id: string }} wanted */
  #isShown({ mailbox, id }) {
    return this.#message?.mailbox === mailbox && this.#message.id === id;
  }

  /** @param {Message} message */
  #draw(message) {
    this.#setBusy(false);
    this.#hasFailed = false;
    this.#message = message;
    fill(this.#head, headline(message), message.code && code(message.code), defects(message.defects));
    this.#head.scrollTop = 0;
    if (this.#sheet.parentNode !== this) fill(this, this.#sheet);
    this.#tabs.show(message);
    this.dispatchEvent(new CustomEvent('message-loaded', { bubbles: true, detail: message }));
  }

  /**
   * @param {{ mailbox: string, id: string }} wanted
   * @param {unknown} error
   */
  #failed(wanted, error) {
    this.#setBusy(false);
    if (error instanceof api.ApiError && error.status === 404) {
      cache.delete(wanted.mailbox, wanted.id);
      this.#hint('trash', 'This message does not exist', h('p', {}, 'It was deleted, or removed because a storage limit was reached.'));
      return;
    }
    // A message that is already shown stays.
    if (this.#isShown(wanted)) return;
    const retry = h('button', { class: 'button', type: 'button', onclick: () => this.#load() }, 'Try again');
    this.#hint('warning', 'The message could not be loaded', h('p', { role: 'alert' }, api.sentence(error)), retry);
    this.#hasFailed = true;
  }

  /**
   * @param {IconName} iconName
   * @param {string} title
   * @param {...HTMLElement} more
   */
  #hint(iconName, title, ...more) {
    const hadFocus = this.#sheet.contains(document.activeElement);
    this.#message = null;
    this.#hasFailed = false;
    this.#tabs.clear();
    fill(this, h('div', { class: 'empty' }, icon(iconName), h('h2', {}, title), ...more));
    // The focused element was removed; the focus moves here, so that screen readers announce the hint.
    if (hadFocus) this.focus({ preventScroll: true });
  }

  /**
   * Sets whether a message is loading.
   * @param {boolean} busy
   */
  #setBusy(busy) {
    set(this, { 'data-waiting': busy, 'aria-busy': busy && 'true' });
  }
}

customElements.define('message-view', MessageView);
