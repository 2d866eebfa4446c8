// Listening to what happens, as long as a page is open: arrivals and deletions of one mailbox or of all. A lost
// connection is taken up again by itself; what happened meanwhile is for the page to ask, as `begun` tells it.

/** @import { Summary } from '../types.js' */

import { below } from './paths.js';
import * as connection from './connection.js';
import * as session from './session.js';

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** After so long a silence the server is asked whether it is there: a connection may die without a word. */
const SILENCE = 45_000;
/** How often that is looked at. */
const LOOK = 5_000;
/** What the server closes with when the login has ended. */
const REVOKED = 1008;
/** How long the server may take to say that it is there. */
const PATIENCE = 5_000;

/**
 * @typedef {object} Listener
 * @property {() => void} begun The connection stands, for the first time or again; the last messages are told once more.
 * @property {(message: Summary) => void} stored
 * @property {(mailbox: string, id: string) => void} deleted
 */

/**
 * Listens until the signal says that nobody wants to hear any more.
 * @param {string | null} mailbox All of them, when it is null.
 * @param {Listener} listener
 * @param {AbortSignal} signal
 */
export function listen(mailbox, listener, signal) {
  const path = mailbox === null ? below('api', 'v2', 'monitor', 'messages') : below('api', 'v2', 'monitor', 'messages', mailbox);
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const ear = new Ear(url, listener);
  const looking = setInterval(() => ear.look(), LOOK);
  // A page that is left may be kept for the way back, but nobody listens there meanwhile.
  window.addEventListener('pagehide', () => ear.close(), { signal });
  window.addEventListener('pageshow', ({ persisted }) => persisted && ear.connect(), { signal });
  window.addEventListener('online', () => ear.hurry() || ear.check(), { signal });
  document.addEventListener('visibilitychange', () => document.hidden || ear.hurry() || ear.look(), { signal });
  signal.addEventListener('abort', () => {
    clearInterval(looking);
    ear.close();
  });
  ear.connect();
}

/** One connection at a time, taken up again whenever it is lost. */
class Ear {
  #url;
  #listener;
  #line = connection.line();
  #wait = FIRST_WAIT;
  /** Null while there is none: it is closed, or waits for the next attempt. @type {WebSocket | null} */
  #socket = null;
  /** Set while it waits. @type {number | undefined} */
  #timer;
  /** When something was heard last. */
  #heard = 0;
  #isChecking = false;

  /**
   * @param {URL} url
   * @param {Listener} listener
   */
  constructor(url, listener) {
    this.#url = url;
    this.#listener = listener;
  }

  connect() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#heard = performance.now();
    const socket = this.#socket = new WebSocket(this.#url);
    socket.onopen = () => {
      this.#heard = performance.now();
      this.#wait = FIRST_WAIT;
      this.#line.up();
      this.#listener.begun();
    };
    socket.onmessage = ({ data }) => {
      this.#heard = performance.now();
      tell(this.#listener, data);
    };
    socket.onclose = ({ code }) => {
      if (code === REVOKED) session.ask();
      else if (socket === this.#socket) this.#lost();
    };
  }

  /** Connects now if it waits. Returns whether it did. */
  hurry() {
    const waits = this.#timer !== undefined;
    if (waits) this.connect();
    return waits;
  }

  /** Makes sure of the server when nothing was heard of it for long. */
  look() {
    if (!document.hidden && performance.now() - this.#heard > SILENCE) this.check();
  }

  async check() {
    const suspect = this.#socket;
    if (!suspect || this.#isChecking) return;
    this.#isChecking = true;
    const isThere = await answers();
    this.#isChecking = false;
    this.#heard = performance.now();
    if (isThere || suspect !== this.#socket) return;
    leave(suspect);
    this.#lost();
  }

  close() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#line.up();
    if (this.#socket) leave(this.#socket);
    this.#socket = null;
  }

  #lost() {
    this.#socket = null;
    this.#line.down();
    // Not all pages at once when a server comes back.
    this.#timer = window.setTimeout(() => this.connect(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
  }
}

/** Whether the server is there. What stands before it and answers in its place says 502 or the like. */
async function answers() {
  try {
    const { status } = await fetch(below('livez'), { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
    return status < 500;
  } catch {
    return false;
  }
}

/**
 * Closes a connection. One that is still being made is let come about: else the browser complains that it failed.
 * @param {WebSocket} socket
 */
function leave(socket) {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}

/**
 * @param {Listener} listener
 * @param {string} data
 */
function tell(listener, data) {
  const { variant, identifier, header } = JSON.parse(data);
  if (variant === 'message-stored') listener.stored(header);
  if (variant === 'message-deleted') listener.deleted(identifier.mailbox, identifier.id);
}
