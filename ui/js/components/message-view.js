// <message-view>: one message: its headline, what is wrong with it, and its tabs. It asks for the message and remembers
// the last few, and tells of each that it shows by `message-loaded`, which bubbles. The list beside it and the bar above it
// (back, unread, delete) belong to the mailbox page.

/** @import { Message } from '../types.js' */
/** @import { IconName } from '../lib/icons.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import { fill, h, set } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { code, likeliest } from './message/code.js';
import { defects } from './message/defects.js';
import { headline } from './message/headline.js';
import { MessageMemory } from './message/memory.js';
import { MessageTabs } from './message/tabs.js';

/** How long nothing is said about a message that is on its way. */
const PATIENCE = 200;

const memory = new MessageMemory();

export class MessageView extends HTMLElement {
  /** @type {{ mailbox: string, id: string } | null} */
  #wanted = null;
  /** What stands there: a message, and then which, or a hint. @type {Message | null} */
  #message = null;
  #asking = new AbortController();
  #gone = new AbortController();
  /** Whether it stands there that the message could not be loaded. */
  #hasFailed = false;
  #tabs = new MessageTabs();
  #head = h('div', { class: 'message-head' });
  #sheet = h('article', { class: 'message', 'aria-label': 'Message' }, this.#head, this.#tabs);

  connectedCallback() {
    this.#gone = new AbortController();
    connection.changes.addEventListener('change', () => this.#hasFailed && !connection.isLost() && this.#ask(), { signal: this.#gone.signal });
    if (this.#wanted) this.#ask();
    else this.clear();
  }

  disconnectedCallback() {
    this.#gone.abort();
    this.#asking.abort();
    this.#wait(false);
  }

  /**
   * Shows a message; the one before stays until it is there. One that is shown already is looked for once more, in case
   * that it is gone.
   * @param {string} mailbox
   * @param {string} id
   */
  show(mailbox, id) {
    this.#wanted = { mailbox, id };
    if (this.isConnected) this.#ask();
  }

  /** Shows that no message is chosen. */
  clear() {
    this.#asking.abort();
    this.#wanted = null;
    this.#wait(false);
    this.#hint('envelope', 'No message chosen', h('p', {}, 'Choose one from the list to see its HTML, text, headers, parts and source.'));
  }

  /** Asks for the wanted message; whoever was asked before need not answer any more. */
  async #ask() {
    const wanted = this.#wanted;
    if (!wanted) return;
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;

    // A remembered message is shown at once, and asked for all the same: it does not change, but it may be gone meanwhile.
    const known = memory.recall(wanted.mailbox, wanted.id);
    if (known && !this.#isShown(wanted)) this.#draw(known);
    const slow = setTimeout(() => !this.#isShown(wanted) && !signal.aborted && this.#wait(true), PATIENCE);
    try {
      // What stands above the text comes with it, so that nothing moves. A code is not worth an error.
      const code = known ? known.code : api.codes(wanted.mailbox, wanted.id, signal).then(likeliest, () => null);
      const message = { ...(await api.message(wanted.mailbox, wanted.id, signal)), code: await code };
      if (signal.aborted) return;
      memory.keep(message);
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
    this.#wait(false);
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
    this.#wait(false);
    if (error instanceof api.ApiError && error.status === 404) {
      memory.forget(wanted.mailbox, wanted.id);
      this.#hint('trash', 'This message is gone', h('p', {}, 'It was deleted, or it had to make room for newer ones.'));
      return;
    }
    // A message that is known needs no answer to be read.
    if (this.#isShown(wanted)) return;
    const retry = h('button', { class: 'button', type: 'button', onclick: () => this.#ask() }, 'Try again');
    this.#hint('warning', 'The message could not be loaded', h('p', { role: 'alert' }, api.sentence(error)), retry);
    this.#hasFailed = true;
  }

  /**
   * @param {IconName} sign
   * @param {string} title
   * @param {...HTMLElement} more
   */
  #hint(sign, title, ...more) {
    const hadFocus = this.#sheet.contains(document.activeElement);
    this.#message = null;
    this.#hasFailed = false;
    this.#tabs.clear();
    fill(this, h('div', { class: 'empty' }, icon(sign), h('h2', {}, title), ...more));
    // What had the focus is gone; who reads is told here why.
    if (hadFocus) this.focus({ preventScroll: true });
  }

  /**
   * Says that something is on its way, or that nothing is.
   * @param {boolean} busy
   */
  #wait(busy) {
    set(this, { 'data-waiting': busy, 'aria-busy': busy && 'true' });
  }
}

customElements.define('message-view', MessageView);
