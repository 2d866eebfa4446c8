// <message-links>: the links of a message, each with its text, its URL, where it was found, and what may be wrong with it. No link is
// requested.

/** @import { Link, Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { plural } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { LazyPanel } from './lazy-panel.js';
import { scroller } from './controls.js';
import { isLink } from './linkify.js';
import { withShowMore } from './show-more.js';

const FIRST_ROWS = 100;

/** Longer URLs are truncated in the display, not when they are copied. */
const MAX_LENGTH = 2_000;

/** @type {Record<Link['where'], string>} */
const SOURCES = { html: 'HTML', text: 'Text', header: 'Header' };

/** The start of a text that is a URL: with a scheme, with `www`, or with a path. A name such as `terms.txt` is not. */
const HOST = /^(?:https?:\/\/(?=[a-z0-9])|(?=www\.)|(?=[a-z0-9.-]+\/))((?:[a-z0-9-]+\.)+[a-z]{2,})(?=$|[/?#:])/iu;
const LOCAL_HOST = /^(?:localhost|127(?:\.\d+){3}|\[::1\]|.*\.(?:local|localhost|internal))$/u;

/** @extends {LazyPanel<Link[]>} */
export class MessageLinks extends LazyPanel {
  /** @param {Message} message */
  constructor({ id }) {
    super((signal) => api.links(id, signal), draw);
  }
}

/** @param {Link[]} links */
function draw(links) {
  if (links.length === 0) return [h('div', { class: 'empty' }, icon('open'), h('h2', {}, 'No links'), h('p', {}, 'The text, the HTML and the headers of this message contain no links.'))];
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
  const bad = links.filter((link) => problem(link) !== null).length;
  const body = scroller('Links', 'message-links');
  fill(body,
    h('p', { class: 'soft' }, `${plural(links.length, 'link')}, ${bad === 0 ? 'no problems' : `${bad} with a problem`}. The URLs are checked without requests.`),
    h('ul', {}, withShowMore(links, row, { first: FIRST_ROWS, wrap })));
  return [body];
}

/** @param {Link} link */
function row(link) {
  const { href, text, 'image-alt': alt, where, kind, main } = link;
  const words = visible(text).trim() || (alt !== null && visible(alt).trim() && `Image: ${visible(alt).trim()}`) || '';
  const shown = visible(href.length > MAX_LENGTH ? `${href.slice(0, MAX_LENGTH)}…` : href);
  const mayFollow = kind !== 'other' && isLink(href);
  const address = mayFollow
    ? h('a', { class: 'mono', href, target: '_blank', rel: 'noopener noreferrer' }, h('bdi', {}, shown))
    : h('bdi', { class: 'mono soft', title: 'Not clickable: only web and mail links can be opened.' }, shown);
  const found = problem(link);
  return h('li', { class: 'link' },
    h('div', { class: 'link-words' }, words && words !== shown && h('bdi', { class: 'link-text' }, words), address, found && h('span', { class: 'link-problem' }, icon('warning'), found)),
    main && h('span', { class: 'badge main', title: 'The link that the message asks to follow' }, 'Main link'),
    h('span', { class: 'badge' }, SOURCES[where] ?? where),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the URL ${shown}`, title: 'Copy the URL', onclick: () => copy(href, 'URL copied') }, icon('copy')));
}

/**
 * Returns what is wrong with a link, in a sentence, or null.
 * @param {Link} link
 */
function problem({ href, text, kind }) {
  if (href.trim() === '' || href === '#') return 'The link has no URL.';
  if (kind === 'other') return href.startsWith('#') || /^[a-z][a-z0-9+.-]*:/iu.test(href) ? null : 'The URL is relative. Mail clients cannot open it.';
  if (!isLink(href)) return 'The URL is not valid.';
  if (kind !== 'http') return null;
  const { protocol, hostname } = new URL(href);
  const named = HOST.exec(text.trim())?.[1].toLowerCase();
  if (named && withoutWww(named) !== withoutWww(hostname)) return `The text shows another host, ${named}.`;
  if (LOCAL_HOST.test(hostname)) return 'The host is a local one.';
  return protocol === 'http:' ? 'The link is not encrypted (http).' : null;
}

/** @param {string} host */
const withoutWww = (host) => host.replace(/^www\./u, '');

customElements.define('message-links', MessageLinks);
