// The URLs of pages and API endpoints. The root of the server is derived from the URL of this module, so a base path needs no
// configuration.

/** @import { Route } from '../types.js' */

/** The root of the server, with a trailing slash. */
const ROOT = new URL('../../../../', import.meta.url);

/**
 * Returns the path of a URL below the root of the server. Segments are encoded.
 * @param {...string} segments
 */
export function serverPath(...segments) {
  return ROOT.pathname + segments.map(segment).join('/');
}

/** Returns whether a browser removes this segment from a path, even if it is encoded. */
export const isDotSegment = (/** @type {string} */ name) => name === '.' || name === '..';

/** @param {string} name */
function segment(name) {
  // No mailbox has such a name. With three dots the request reaches the server, which reports the invalid name.
  return encodeURIComponent(isDotSegment(name) ? '...' : name.toWellFormed());
}

export const home = () => ROOT.pathname;
export const monitor = () => serverPath('monitor');
export const status = () => serverPath('status');
/** The API documentation, which is not part of this web interface. */
export const api = () => serverPath('api', 'docs');

/**
 * The search page, for all mailboxes or for one.
 * @param {{ query?: string, mailbox?: string | null }} [filter]
 */
export const search = ({ query = '', mailbox = null } = {}) => serverPath('search') + parameters({ q: query, mailbox });

/**
 * The page of sessions: all, those with a refusal, or one.
 * @param {{ refused?: boolean, id?: string | null }} [filter]
 */
export const sessions = ({ refused = false, id = null } = {}) => serverPath('sessions') + parameters({ refused: refused && 'true', id });

/**
 * The login page, which returns to the given page after the login.
 * @param {Location} from
 */
export function login({ pathname, search }) {
  const next = pathname.slice(ROOT.pathname.length) + search;
  return serverPath('login') + (next && `?next=${encodeURIComponent(next)}`);
}

/**
 * The page of a mailbox or of one of its messages.
 * @param {string} mailbox
 * @param {string | null} [id]
 */
export function mailbox(mailbox, id = null) {
  return id === null ? serverPath('m', mailbox) : serverPath('m', mailbox, id);
}

/**
 * The document with the HTML of a message, for a frame.
 * @param {string} mailbox
 * @param {string} id
 * @param {{ remote?: boolean, scheme?: 'light' | 'dark' | null }} [options]
 */
export function preview(mailbox, id, { remote = false, scheme = null } = {}) {
  return serverPath('serve', 'mailbox', mailbox, id, 'html') + parameters({ remote: remote && '1', scheme });
}

/**
 * @param {string} mailbox
 * @param {string} id
 */
export const source = (mailbox, id) => serverPath('serve', 'mailbox', mailbox, id, 'source');

/**
 * The URL of an attachment, to view it or to download it.
 * @param {'vattach' | 'dattach'} purpose
 * @param {string} mailbox
 * @param {string} id
 * @param {{ index: number, filename: string }} attachment
 */
export function attachment(purpose, mailbox, id, { index, filename }) {
  return serverPath('mailbox', purpose, mailbox, id, String(index), filename && !isDotSegment(filename) ? filename : 'attachment');
}

/**
 * The decoded content of a part.
 * @param {string} mailbox
 * @param {string} id
 * @param {number} index Its index among all parts.
 */
export const part = (mailbox, id, index) => serverPath('api', 'v2', 'mailbox', mailbox, id, 'parts', String(index));

/**
 * Returns the page of a URL.
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
  const query = new URLSearchParams(url.search);
  if (first === 'search' && segments.length === 1) return { page: 'search', query: query.get('q') ?? '', mailbox: query.get('mailbox') || null };
  if (first === 'sessions' && segments.length === 1) return { page: 'sessions', refused: query.get('refused') === 'true', id: query.get('id') || null };
  return { page: 'missing' };
}

/**
 * Returns whether a URL is a page of this web interface.
 * @param {URL} url
 */
export function isPage(url) {
  return url.origin === ROOT.origin && route(url).page !== 'missing';
}

/**
 * Builds a query string. Parameters without a value are omitted.
 * @param {Record<string, string | number | false | null | undefined>} given
 */
export function parameters(given) {
  const pairs = Object.entries(given).flatMap(([name, value]) => (value === undefined || value === null || value === false || value === '' ? [] : [[name, String(value)]]));
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : '';
}
