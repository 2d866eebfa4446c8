// The URLs of pages and API endpoints. The root of the server is derived from the URL of the bundle, or of this module if it is
// loaded without the bundle, so a base path needs no configuration.

/** @import { EntryState, Route } from '../types.js' */
/** @import { Scope } from './scope.js' */

/** The root of the server, with a trailing slash. */
const ROOT = new URL(import.meta.url.slice(0, import.meta.url.lastIndexOf('/assets/') + 1));

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

/** The inbox: all messages. */
export const inbox = () => ROOT.pathname;

/**
 * Returns whether the root is that of a project: `/p/shop/`.
 * @param {string | null} current The project of this page.
 */
export const isBelowProject = (current) => current !== null && ROOT.pathname.endsWith(`/p/${current}/`);

/**
 * The root of another project, or that of the server for all mail.
 * @param {string | null} name Null for all mail.
 * @param {string | null} current The project of this page.
 */
export function project(name, current) {
  const root = isBelowProject(current) ? ROOT.pathname.slice(0, -`p/${current}/`.length) : ROOT.pathname;
  return name === null ? root : `${root}p/${name}/`;
}

export const status = () => serverPath('status');
export const settings = () => serverPath('settings');
/** The API documentation. */
export const api = () => serverPath('api', 'docs');

/**
 * The search results in all mailboxes or in one, with the message that is shown.
 * @param {{ query?: string, mailbox?: string | null, id?: string | null }} [filter]
 */
export const search = ({ query = '', mailbox = null, id = null } = {}) => serverPath('search') + parameters({ q: query, mailbox, id });

/**
 * The page of a list, with the message that is shown.
 * @param {Scope} scope
 * @param {string | null} [id]
 */
export function list({ mailbox: name, query }, id = null) {
  if (query !== '') return search({ query, mailbox: name, id });
  if (name !== null) return mailbox(name, id);
  return id === null ? inbox() : message(id);
}

/**
 * A message of the inbox.
 * @param {string} id
 */
const message = (id) => serverPath('messages', id);

/**
 * The page of sessions: all, those with a refusal, or one.
 * @param {{ refused?: boolean, id?: string | null }} [filter]
 */
export const sessions = ({ refused = false, id = null } = {}) => serverPath('sessions') + parameters({ refused: refused && 'true', id });

/**
 * The page of the relay or the webhooks: all entries of the queue, those in a state, or those of a message.
 * @param {'relay' | 'webhooks'} page
 * @param {{ state?: EntryState | null, message?: string | null }} [filter]
 */
export const queue = (page, { state = null, message = null } = {}) => serverPath(page) + parameters({ state, message });

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
 * A resource of a message.
 * @param {string} id The id of the message or of one of its copies.
 * @param {...string} segments
 */
const content = (id, ...segments) => serverPath('api', 'v2', 'messages', id, ...segments);

/**
 * The document with the HTML of a message, for a frame.
 * @param {string} id
 * @param {{ remote?: boolean, scheme?: 'light' | 'dark' | null }} [options]
 */
export const preview = (id, { remote = false, scheme = null } = {}) => content(id, 'html') + parameters({ remote: remote && '1', scheme });

/** @typedef {{ download?: boolean }} Purpose Whether the browser saves the response as a file. */

/**
 * @param {string} id
 * @param {Purpose} [purpose]
 */
export const source = (id, { download = false } = {}) => content(id, 'source') + parameters({ download: download && 'true' });

/**
 * The decoded body of a message, as plain text.
 * @param {string} id
 * @param {'html' | 'text'} format
 * @param {Purpose} [purpose]
 */
export const body = (id, format, { download = false } = {}) => content(id, 'body') + parameters({ format, download: download && 'true' });

/**
 * @param {string} id
 * @param {number} index
 * @param {Purpose} [purpose]
 */
export const attachment = (id, index, { download = false } = {}) => content(id, 'attachments', String(index)) + parameters({ download: download && 'true' });

/**
 * All attachments in one file.
 * @param {string} id
 */
export const attachmentsZip = (id) => content(id, 'attachments.zip');

/**
 * The decoded content of a part.
 * @param {string} id
 * @param {number} index Its index among all parts.
 */
export const part = (id, index) => content(id, 'parts', String(index));

/** The states of entries in a queue. @type {EntryState[]} */
export const ENTRY_STATES = ['queued', 'sending', 'delivered', 'failed', 'cancelled'];

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
  const [first, second, third = null] = segments;
  const query = new URLSearchParams(url.search);
  const isSingle = segments.length === 1;
  if (path === '' || (first === 'monitor' && isSingle)) return mail({}, null);
  if (first === 'messages' && second && segments.length === 2) return mail({}, second);
  if (first === 'm' && second && segments.length <= 3) return mail({ mailbox: second }, third || null);
  if (first === 'search' && isSingle) return mail({ query: query.get('q')?.trim() ?? '', mailbox: query.get('mailbox') || null }, query.get('id') || null);
  if (isSingle && (first === 'status' || first === 'settings' || first === 'send')) return { page: first };
  if (path === 'api/docs') return { page: 'docs' };
  if (first === 'sessions' && isSingle) return { page: 'sessions', refused: query.get('refused') === 'true', id: query.get('id') || null };
  if (isSingle && (first === 'relay' || first === 'webhooks')) return { page: first, state: ENTRY_STATES.find((state) => state === query.get('state')) ?? null, message: query.get('message') || null };
  return { page: 'missing' };
}

/**
 * @param {Partial<Scope>} scope
 * @param {string | null} id
 * @returns {Route}
 */
const mail = ({ mailbox = null, query = '' }, id) => ({ page: 'mail', scope: { mailbox, query }, id });

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
