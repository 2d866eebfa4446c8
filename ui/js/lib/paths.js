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
 * The page that searches, in all mail or in one mailbox.
 * @param {{ query?: string, mailbox?: string | null }} [asked]
 */
export const search = ({ query = '', mailbox = null } = {}) => below('search') + parameters({ q: query, mailbox });

/**
 * The page of the sessions: all, those in which something was refused, or one.
 * @param {{ refused?: boolean, id?: string | null }} [asked]
 */
export const sessions = ({ refused = false, id = null } = {}) => below('sessions') + parameters({ refused: refused && 'true', id });

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
  return below('serve', 'mailbox', mailbox, id, 'html') + parameters({ remote: remote && '1', scheme });
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
 * The content of a part, decoded.
 * @param {string} mailbox
 * @param {string} id
 * @param {number} index Its place among all parts.
 */
export const part = (mailbox, id, index) => below('api', 'v2', 'mailbox', mailbox, id, 'parts', String(index));

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
  const asked = new URLSearchParams(url.search);
  if (first === 'search' && segments.length === 1) return { page: 'search', query: asked.get('q') ?? '', mailbox: asked.get('mailbox') || null };
  if (first === 'sessions' && segments.length === 1) return { page: 'sessions', refused: asked.get('refused') === 'true', id: asked.get('id') || null };
  return { page: 'missing' };
}

/**
 * Whether an address is one of ours.
 * @param {URL} url
 */
export function isPage(url) {
  return url.origin === ROOT.origin && route(url).page !== 'missing';
}

/**
 * A query of what was given: nothing stands for what was not.
 * @param {Record<string, string | number | false | null | undefined>} given
 */
export function parameters(given) {
  const pairs = Object.entries(given).flatMap(([name, value]) => (value === undefined || value === null || value === false || value === '' ? [] : [[name, String(value)]]));
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : '';
}
