// The addresses of pages and of what they are made from. The server's root is found from where this file lies, so
// nothing has to be told about base paths.

/** @import { Route } from '../types.js' */

/** The root of the server, with a slash at the end. */
const ROOT = new URL('../../../../', import.meta.url);

/**
 * The address of something below the root; every segment may hold any character.
 * @param {...string} segments
 */
export function below(...segments) {
  return ROOT.pathname + segments.map(segment).join('/');
}

/** What a browser takes for a step through the path, however it is encoded. */
export const isStep = (/** @type {string} */ name) => name === '.' || name === '..';

/** @param {string} name */
function segment(name) {
  // Nothing on the server is named like a step. About three dots it can at least say so.
  return encodeURIComponent(isStep(name) ? '...' : name.toWellFormed());
}

export const home = () => ROOT.pathname;
export const monitor = () => below('monitor');
export const status = () => below('status');
/** The description of the API, which is no page of ours. */
export const api = () => below('api', 'docs');

/**
 * The page that asks who one is, and then leads to this one.
 * @param {Location} from
 */
export function login({ pathname, search }) {
  const next = pathname.slice(ROOT.pathname.length) + search;
  return below('login') + (next && `?next=${encodeURIComponent(next)}`);
}

/**
 * The page of a mailbox, or of one of its messages.
 * @param {string} mailbox
 * @param {string | null} [id]
 */
export function mailbox(mailbox, id = null) {
  return id === null ? below('m', mailbox) : below('m', mailbox, id);
}

/**
 * The document that shows a message's HTML in a frame.
 * @param {string} mailbox
 * @param {string} id
 * @param {{ remote?: boolean, scheme?: 'light' | 'dark' | null }} [shown]
 */
export function preview(mailbox, id, { remote = false, scheme = null } = {}) {
  const query = new URLSearchParams();
  if (remote) query.set('remote', '1');
  if (scheme) query.set('scheme', scheme);
  const asked = query.toString();
  return below('serve', 'mailbox', mailbox, id, 'html') + (asked && `?${asked}`);
}

/**
 * @param {string} mailbox
 * @param {string} id
 */
export const source = (mailbox, id) => below('serve', 'mailbox', mailbox, id, 'source');

/**
 * An attachment to look at, or to save.
 * @param {'vattach' | 'dattach'} purpose
 * @param {string} mailbox
 * @param {string} id
 * @param {{ index: number, filename: string }} attachment
 */
export function attachment(purpose, mailbox, id, { index, filename }) {
  return below('mailbox', purpose, mailbox, id, String(index), filename && !isStep(filename) ? filename : 'attachment');
}

/**
 * What an address means.
 * @param {URL | Location} url
 * @returns {Route}
 */
export function route(url) {
  if (!url.pathname.startsWith(ROOT.pathname)) return { page: 'missing' };
  const path = url.pathname.slice(ROOT.pathname.length).replace(/\/$/u, '');
  /** @type {string[]} */
  let segments;
  try {
    segments = path.split('/').map(decodeURIComponent);
  } catch {
    return { page: 'missing' };
  }
  const [first, mailbox, id = null] = segments;
  if (path === '') return { page: 'home' };
  if (first === 'm' && mailbox && segments.length <= 3) return { page: 'mailbox', mailbox, id: id || null };
  if (first === 'monitor' && segments.length === 1) return { page: 'monitor' };
  if (first === 'status' && segments.length === 1) return { page: 'status' };
  return { page: 'missing' };
}

/**
 * Whether an address is one of ours.
 * @param {URL} url
 */
export function isPage(url) {
  return url.origin === ROOT.origin && route(url).page !== 'missing';
}
