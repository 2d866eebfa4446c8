// Listening to what happens, as long as a page is open: arrivals and deletions of one mailbox or of all. A lost
// connection is taken up again by itself; what happened meanwhile is for the page to ask, as `begun` tells it.

/** @import { Summary } from '../types.js' */

import { below } from './paths.js';
import * as connection from './connection.js';

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

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

  const line = connection.line();
  let wait = FIRST_WAIT;
  /** @type {WebSocket | null} */
  let socket = null;
  /** @type {number | undefined} */
  let timer;

  const connect = () => {
    clearTimeout(timer);
    timer = undefined;
    const own = socket = new WebSocket(url);
    own.onopen = () => {
      wait = FIRST_WAIT;
      line.up();
      listener.begun();
    };
    own.onmessage = ({ data }) => tell(listener, data);
    own.onclose = () => {
      if (signal.aborted || own !== socket) return;
      line.down();
      // Not all pages at once when a server comes back.
      timer = window.setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    };
  };
  const hurry = () => {
    if (timer !== undefined && document.visibilityState === 'visible') connect();
  };
  // A page that is left may be kept for the way back, but nobody listens there meanwhile.
  const sleep = () => {
    clearTimeout(timer);
    timer = undefined;
    if (socket) leave(socket);
    socket = null;
  };
  const wake = (/** @type {PageTransitionEvent} */ { persisted }) => persisted && connect();

  connect();
  window.addEventListener('pagehide', sleep, { signal });
  window.addEventListener('pageshow', wake, { signal });
  window.addEventListener('online', hurry, { signal });
  document.addEventListener('visibilitychange', hurry, { signal });
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    line.end();
    if (socket) leave(socket);
  });
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
