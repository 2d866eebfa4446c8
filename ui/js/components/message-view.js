// <message-view>: one message: headline, code, link, attachments, problems, invitations and tabs, which scroll together. It loads the message,
// caches the last ones, and dispatches `message-loaded`, which bubbles, for each message that it shows; its detail is null if a hint
// is shown instead. The list and the toolbar (back, unread, delete) are not part of it.

/** @import { RelayEntryPage, ShownMessage, Summary } from '../types.js' */
/** @import { IconName } from '../lib/icons.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as relay from '../lib/relay.js';
import { fill, h, set } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { attachments } from './message/attachments.js';
import { code } from './message/code.js';
import { defects } from './message/defects.js';
import { checked, ofSummary } from './message/envelope.js';
import { NARROW, headingLevel } from './message/heading.js';
import { headline } from './message/headline.js';
import { MessageInvitations, calendarParts } from './message/invitation.js';
import { mainLink } from './message/main-link.js';
import { MessageCache } from './message/message-cache.js';
import { MessageRelay } from './message/relay.js';
import { remoteNote } from './message/remote-note.js';
import { MessageTabs } from './message/tabs.js';
import { unsubscribeCheck } from './message/unsubscribe.js';

/** The delay before a loading message is indicated, in milliseconds. */
const LOADING_DELAY_MS = 200;

/** If they could not be loaded. @type {RelayEntryPage} */
const NO_ENTRIES = { entries: [], next: null };

const cache = new MessageCache();

export class MessageView extends HTMLElement {
  /** The id of the message, or of a copy. @type {string | null} */
  #wanted = null;
  /** Its entry in a list of messages, if that is known. @type {Summary | undefined} */
  #summary;
  /** The message that is shown; null if a hint is shown. @type {ShownMessage | null} */
  #message = null;
  #request = new AbortController();
  #disconnected = new AbortController();
  /** True if the view shows that the message could not be loaded. */
  #hasFailed = false;
  /** The entries of the message in the queue of the relay. @type {MessageRelay | null} */
  #relay = null;
  /** The note about remote content of the message. @type {HTMLElement | null} */
  #remote = null;
  #tabs = new MessageTabs();
  #head = h('div', { class: 'message-head' });
  #sheet = h('article', { class: 'message', 'aria-label': 'Message' }, this.#head, this.#tabs);

  constructor() {
    super();
    // Another tab starts at its top; the headline stays in or out of view.
    this.#tabs.addEventListener('tab-change', () => this.scrollTo({ top: Math.min(this.scrollTop, this.#tabs.offsetTop), left: 0, behavior: 'instant' }));
  }

  connectedCallback() {
    this.#disconnected = new AbortController();
    connection.changes.addEventListener('change', () => this.#hasFailed && !connection.isLost() && this.#load(), { signal: this.#disconnected.signal });
    // A message that is loading may already have loaded its entries.
    relay.queue.changes.addEventListener('change', () => this.#wanted !== null && !this.#isShown(this.#wanted) && this.#load(), { signal: this.#disconnected.signal });
    NARROW.addEventListener('change', () => this.#message && this.#drawHead(this.#message), { signal: this.#disconnected.signal });
    if (this.#wanted) this.#load();
    else this.clear();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#request.abort();
    this.#setBusy(false);
  }

  /**
   * Shows a message. The previous message stays until it is loaded; a hint is removed. A message that is already shown is loaded
   * again, because it may have been deleted.
   * @param {string} id The id of the message, or of a copy.
   * @param {Summary} [summary] Its entry in a list of messages, but not in that of a mailbox. It saves a request.
   */
  show(id, summary) {
    if (this.#message === null && id !== this.#wanted) fill(this);
    this.#wanted = id;
    this.#summary = summary;
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
    if (wanted === null) return;
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;

    // A cached message is shown at once and still loaded: its content does not change, but it may have been deleted or tagged.
    const cached = cache.get(wanted);
    if (cached && !this.#isShown(wanted)) this.#draw(cached);
    const slow = setTimeout(() => !this.#isShown(wanted) && !signal.aborted && this.#setBusy(true), LOADING_DELAY_MS);
    try {
      const message = await load(wanted, this.#summary, signal);
      if (signal.aborted) return;
      cache.put(message);
      if (!this.#isShown(wanted)) return this.#draw(message);
      if (this.#message && shownEnvelope(this.#message) !== shownEnvelope(message)) this.#drawHead(message);
      else if (message.relay) this.#relay?.update(message.relay);
      this.#dispatchLoaded();
    } catch (error) {
      if (!signal.aborted) this.#failed(wanted, error);
    } finally {
      clearTimeout(slow);
    }
  }

  /** @param {string} id */
  #isShown(id) {
    return this.#message?.id === id;
  }

  /** @param {ShownMessage} message */
  #draw(message) {
    this.#setBusy(false);
    this.#hasFailed = false;
    this.#remote = remoteNote(message.remote, (isLoaded) => this.#tabs.loadRemote(isLoaded));
    if (this.#sheet.parentNode !== this) fill(this, this.#sheet);
    // The tabs first: the request for the HTML starts while the headline is drawn.
    this.#tabs.show(message);
    this.#drawHead(message);
    this.scrollTo({ top: 0, left: 0, behavior: 'instant' });
    this.#dispatchLoaded();
  }

  /** @param {ShownMessage} message */
  #drawHead(message) {
    this.#message = message;
    this.#relay = message.relay && new MessageRelay(message.relay, message.whole?.id ?? message.id);
    const link = message['main-link'];
    const helpers = [message.code && code(message.code), link && mainLink(link), this.#remote, unsubscribeCheck(message), attachments(message)].filter((one) => one !== null);
    fill(this.#head,
      headline(message),
      helpers.length > 0 && h('div', { class: 'message-helpers' }, helpers),
      this.#relay,
      defects(message.defects),
      calendarParts(message).length > 0 && new MessageInvitations(message));
  }

  /**
   * @param {string} wanted
   * @param {unknown} error
   */
  #failed(wanted, error) {
    this.#setBusy(false);
    if (error instanceof api.ApiError && error.status === 404) {
      cache.delete(wanted);
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
    fill(this, h('div', { class: 'empty' }, icon(iconName), h(this.#wanted === null ? 'h2' : headingLevel(), {}, title), ...more));
    // The focused element was removed; the focus moves here, so that screen readers announce the hint.
    if (hadFocus) this.focus({ preventScroll: true });
    this.#dispatchLoaded();
  }

  #dispatchLoaded() {
    this.dispatchEvent(new CustomEvent('message-loaded', { bubbles: true, detail: this.#message }));
  }

  /**
   * Sets whether a message is loading.
   * @param {boolean} busy
   */
  #setBusy(busy) {
    set(this, { 'data-waiting': busy, 'aria-busy': busy && 'true' });
  }
}

/**
 * Returns what the headline shows of the envelope and can change later.
 * @param {ShownMessage} message
 */
const shownEnvelope = ({ whole }) => JSON.stringify([whole?.tags, whole?.copies.map(({ id }) => id)]);

/**
 * Loads a message with everything that its headline needs, so that the layout does not move later. Only an error of the message
 * itself is thrown.
 * @param {string} id
 * @param {Summary | undefined} summary
 * @param {AbortSignal} signal
 * @returns {Promise<ShownMessage>}
 */
async function load(id, summary, signal) {
  const loading = api.message(id, signal);
  // Only a message with several copies needs the request.
  const loadingWhole = summary?.mailboxes.length === 1 ? loading.then((message) => ofSummary(summary, message), () => null) : api.whole(id, signal).then(checked, () => null);
  const [message, whole, relayed] = await Promise.all([
    loading,
    loadingWhole,
    (summary ? relay.entriesOf(summary.id, signal) : loadingWhole.then((whole) => whole && relay.entriesOf(whole.id, signal))).catch(() => NO_ENTRIES),
  ]);
  return { ...message, id, copy: message.id, whole, relay: relayed };
}

customElements.define('message-view', MessageView);
