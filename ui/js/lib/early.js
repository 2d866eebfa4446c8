// The requests and the connection for events that the script of the page (index.html) has started before the bundle was loaded. Each is
// used once.

/** @typedef {{ requests: Map<string, Promise<Response>>, socket: WebSocket | null, events: string[] }} Early `events` are those that were received. */

/** @type {Early | undefined} */
const early = /** @type {{ early?: Early }} */ (/** @type {unknown} */ (window)).early;

/**
 * Returns the response of a GET request, if it was started.
 * @param {string} path
 */
export function takeResponse(path) {
  const response = early?.requests.get(path);
  early?.requests.delete(path);
  return response;
}

/**
 * Returns the connection for these events and the events that it has received, unless it has failed.
 * @param {URL} url
 */
export function takeSocket({ href }) {
  const socket = early?.socket;
  if (!early || !socket || socket.url !== href || socket.readyState > WebSocket.OPEN) return null;
  early.socket = null;
  return { socket, events: early.events.splice(0) };
}

/** Discards what the first page has not used. */
export function discardRest() {
  if (!early) return;
  early.requests.clear();
  if (early.socket) closeSocket(early.socket);
  early.socket = null;
}

/**
 * Closes a connection. If it is still being opened, it is closed after that: otherwise the browser logs an error.
 * @param {WebSocket} socket
 */
export function closeSocket(socket) {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}
