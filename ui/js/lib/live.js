// Live events of one mailbox or of all: stored and deleted messages. A lost connection is reopened. Events in between are not
// replayed completely, so the page reloads its data when `connected` is called.

/** @import { Summary } from '../types.js' */

import { serverPath } from './paths.js';
import * as connection from './connection.js';
import { closeSocket, takeSocket } from './early.js';
import { redirectToLogin } from './login.js';

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
/** After this time without events the page checks the server, because a connection can break without notice. */
const MAX_SILENCE_MS = 45_000;
/** The interval of that check. */
const CHECK_INTERVAL_MS = 5_000;
/** The close code of the server when the login has ended. */
const LOGIN_ENDED = 1008;
/** How long a connection without subscribers stays open. */
const LINGER_MS = 1_500;
/** The time between the first connection and the call of `connected`, so that the first view does not load its data twice. */
const CATCH_UP_MS = 2_000;
/** The timeout of the check. */
const CHECK_TIMEOUT_MS = 5_000;

/**
 * @typedef {object} Handlers
 * @property {() => void} connected The connection was opened: events before this point may be missing. The first time it is called later.
 *   The server then sends the last messages once more.
 * @property {(message: Summary) => void} stored With a mailbox, the id is that of the copy in the mailbox.
 * @property {(mailbox: string, copy: string, message: string) => void} deleted A copy of a message was deleted.
 */

/** The open subscriptions by path. Subscribers of the same events share one. @type {Map<string, Subscription>} */
const subscriptions = new Map();

/**
 * Subscribes to events until the signal is aborted. If the connection was opened earlier, `connected` is not called, and no event is missed.
 * @param {string | null} mailbox Null for all mailboxes.
 * @param {Handlers} handlers
 * @param {AbortSignal} signal
 */
export function subscribe(mailbox, handlers, signal) {
  const path = mailbox === null ? serverPath('api', 'v2', 'events') : serverPath('api', 'v2', 'events', mailbox);
  const subscription = subscriptions.get(path) ?? new Subscription(path, mailbox !== null);
  subscriptions.set(path, subscription);
  subscription.add(handlers);
  signal.addEventListener('abort', () => subscription.remove(handlers, () => subscriptions.delete(path)));
}

/** One WebSocket at a time, reopened after it is lost. */
class Subscription {
  #url;
  #ofMailbox;
  /** @type {Set<Handlers>} */
  #handlers = new Set();
  #tracker = connection.track();
  #retryMs = MIN_RETRY_MS;
  /** Null if there is no connection: closed, or waiting for the next attempt. @type {WebSocket | null} */
  #socket = null;
  /** True until the first attempt has ended. */
  #isFirst = true;
  /** Set between the first connection and the call of `connected`. @type {number | undefined} */
  #catchUpTimer;
  /** Set while waiting for the next attempt. @type {number | undefined} */
  #timer;
  /** The time of the last event. */
  #lastEventAt = 0;
  #isChecking = false;
  /** @type {number | undefined} */
  #lingerTimer;
  /** Aborted when there are no subscribers any more. */
  #closed = new AbortController();

  /**
   * @param {string} path
   * @param {boolean} ofMailbox True if these are the events of one mailbox.
   */
  constructor(path, ofMailbox) {
    this.#url = new URL(path, location.href);
    this.#url.protocol = this.#url.protocol === 'https:' ? 'wss:' : 'ws:';
    this.#ofMailbox = ofMailbox;
    const { signal } = this.#closed;
    const checking = setInterval(() => this.checkIfSilent(), CHECK_INTERVAL_MS);
    signal.addEventListener('abort', () => clearInterval(checking));
    // A page in the back-forward cache closes its connection and reopens it when it is shown again.
    window.addEventListener('pagehide', () => this.close(), { signal });
    window.addEventListener('pageshow', ({ persisted }) => persisted && this.connect(), { signal });
    window.addEventListener('online', () => this.retryNow() || this.check(), { signal });
    document.addEventListener('visibilitychange', () => document.hidden || this.retryNow() || this.checkIfSilent(), { signal });
    this.connect();
  }

  /** @param {Handlers} handlers */
  add(handlers) {
    clearTimeout(this.#lingerTimer);
    this.#handlers.add(handlers);
  }

  /**
   * Removes a subscriber. A while after the last one, closes the connection and calls `closed`. Another list of the same mailbox may
   * follow at once.
   * @param {Handlers} handlers
   * @param {() => void} closed
   */
  remove(handlers, closed) {
    this.#handlers.delete(handlers);
    if (this.#handlers.size > 0) return;
    this.#lingerTimer = window.setTimeout(() => {
      this.#closed.abort();
      this.close();
      closed();
    }, LINGER_MS);
  }

  connect() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lastEventAt = performance.now();
    const started = takeSocket(this.#url);
    const socket = this.#socket = started?.socket ?? new WebSocket(this.#url);
    const opened = () => {
      this.#lastEventAt = performance.now();
      this.#retryMs = MIN_RETRY_MS;
      this.#tracker.up();
      if (this.#isFirst) this.#catchUpTimer = window.setTimeout(() => this.#catchUp(), CATCH_UP_MS);
      else this.#catchUp();
      this.#isFirst = false;
    };
    socket.onmessage = ({ data }) => {
      this.#lastEventAt = performance.now();
      this.#dispatch(data);
    };
    if (socket.readyState === WebSocket.OPEN) opened();
    else socket.onopen = opened;
    // Later, when there are subscribers, and before the next event.
    queueMicrotask(() => started?.events.forEach((data) => this.#dispatch(data)));
    socket.onclose = ({ code }) => {
      if (code === LOGIN_ENDED) redirectToLogin();
      else if (socket === this.#socket) this.#lost();
    };
  }

  /** Connects at once if an attempt is scheduled. Returns whether it was. */
  retryNow() {
    const isScheduled = this.#timer !== undefined;
    if (isScheduled) this.connect();
    return isScheduled;
  }

  /** Checks the server if there was no event for a long time. */
  checkIfSilent() {
    if (!document.hidden && performance.now() - this.#lastEventAt > MAX_SILENCE_MS) this.check();
  }

  async check() {
    const socket = this.#socket;
    if (!socket || this.#isChecking) return;
    this.#isChecking = true;
    const isUp = await isServerUp();
    this.#isChecking = false;
    this.#lastEventAt = performance.now();
    if (isUp || socket !== this.#socket) return;
    closeSocket(socket);
    this.#lost();
  }

  close() {
    clearTimeout(this.#timer);
    clearTimeout(this.#catchUpTimer);
    this.#timer = undefined;
    this.#isFirst = false;
    this.#tracker.up();
    if (this.#socket) closeSocket(this.#socket);
    this.#socket = null;
  }

  /** @param {string} data */
  #dispatch(data) {
    const { variant, identifier, header, message } = JSON.parse(data);
    for (const handlers of this.#handlers) {
      // The event of a mailbox describes the whole message; the list contains the copy.
      if (variant === 'message-stored') handlers.stored(this.#ofMailbox ? { ...message, id: header.id } : message);
      if (variant === 'message-deleted') handlers.deleted(identifier.mailbox, identifier.id, message.id);
    }
  }

  #catchUp() {
    this.#handlers.forEach((handlers) => handlers.connected());
  }

  #lost() {
    clearTimeout(this.#catchUpTimer);
    this.#socket = null;
    this.#isFirst = false;
    this.#tracker.down();
    // The random factor prevents all pages from reconnecting at once.
    this.#timer = window.setTimeout(() => this.connect(), this.#retryMs * (0.75 + Math.random() / 2));
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
  }
}

/** Returns whether the server responds. A proxy responds with a status of 500 or above in its place. */
async function isServerUp() {
  try {
    const { status } = await fetch(serverPath('livez'), { cache: 'no-store', signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
    return status < 500;
  } catch {
    return false;
  }
}
