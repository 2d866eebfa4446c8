// Live events of one mailbox or of all: stored and deleted messages. A lost connection is reopened. Events in between are not
// replayed completely, so the page reloads its data when `connected` is called.

/** @import { Summary } from '../types.js' */

import { serverPath } from './paths.js';
import * as connection from './connection.js';
import { redirectToLogin } from './login.js';

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
/** After this time without events the page checks the server, because a connection can break without notice. */
const MAX_SILENCE_MS = 45_000;
/** The interval of that check. */
const CHECK_INTERVAL_MS = 5_000;
/** The close code of the server when the login has ended. */
const LOGIN_ENDED = 1008;
/** The timeout of the check. */
const CHECK_TIMEOUT_MS = 5_000;

/**
 * @typedef {object} Handlers
 * @property {() => void} connected The connection was opened, for the first time or again. The server then sends the last messages once more.
 * @property {(message: Summary) => void} stored
 * @property {(mailbox: string, id: string) => void} deleted
 */

/**
 * Subscribes to events until the signal is aborted.
 * @param {string | null} mailbox Null for all mailboxes.
 * @param {Handlers} handlers
 * @param {AbortSignal} signal
 */
export function subscribe(mailbox, handlers, signal) {
  const path = mailbox === null ? serverPath('api', 'v2', 'monitor', 'messages') : serverPath('api', 'v2', 'monitor', 'messages', mailbox);
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const subscription = new Subscription(url, handlers);
  const checking = setInterval(() => subscription.checkIfSilent(), CHECK_INTERVAL_MS);
  // A page in the back-forward cache closes its connection and reopens it when it is shown again.
  window.addEventListener('pagehide', () => subscription.close(), { signal });
  window.addEventListener('pageshow', ({ persisted }) => persisted && subscription.connect(), { signal });
  window.addEventListener('online', () => subscription.retryNow() || subscription.check(), { signal });
  document.addEventListener('visibilitychange', () => document.hidden || subscription.retryNow() || subscription.checkIfSilent(), { signal });
  signal.addEventListener('abort', () => {
    clearInterval(checking);
    subscription.close();
  });
  subscription.connect();
}

/** One WebSocket at a time, reopened after it is lost. */
class Subscription {
  #url;
  #handlers;
  #tracker = connection.track();
  #retryMs = MIN_RETRY_MS;
  /** Null if there is no connection: closed, or waiting for the next attempt. @type {WebSocket | null} */
  #socket = null;
  /** Set while waiting for the next attempt. @type {number | undefined} */
  #timer;
  /** The time of the last event. */
  #lastEventAt = 0;
  #isChecking = false;

  /**
   * @param {URL} url
   * @param {Handlers} handlers
   */
  constructor(url, handlers) {
    this.#url = url;
    this.#handlers = handlers;
  }

  connect() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lastEventAt = performance.now();
    const socket = this.#socket = new WebSocket(this.#url);
    socket.onopen = () => {
      this.#lastEventAt = performance.now();
      this.#retryMs = MIN_RETRY_MS;
      this.#tracker.up();
      this.#handlers.connected();
    };
    socket.onmessage = ({ data }) => {
      this.#lastEventAt = performance.now();
      dispatch(this.#handlers, data);
    };
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
    this.#timer = undefined;
    this.#tracker.up();
    if (this.#socket) closeSocket(this.#socket);
    this.#socket = null;
  }

  #lost() {
    this.#socket = null;
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

/**
 * Closes a connection. If it is still being opened, it is closed after that: otherwise the browser logs an error.
 * @param {WebSocket} socket
 */
function closeSocket(socket) {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}

/**
 * @param {Handlers} handlers
 * @param {string} data
 */
function dispatch(handlers, data) {
  const { variant, identifier, header } = JSON.parse(data);
  if (variant === 'message-stored') handlers.stored(header);
  if (variant === 'message-deleted') handlers.deleted(identifier.mailbox, identifier.id);
}
