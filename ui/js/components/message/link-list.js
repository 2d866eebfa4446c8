// <message-links>: the links of a message, each with its text, its URL and where it was found.

/** @import { Link, Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
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
  const body = scroller('Links', 'message-links');
  fill(body, h('ul', {}, withShowMore(links, row, { first: FIRST_ROWS, wrap })));
  return [body];
}

/** @param {Link} link */
function row({ href, text, 'image-alt': alt, where, kind }) {
  const words = visible(text).trim() || (alt !== null && visible(alt).trim() && `Image: ${visible(alt).trim()}`) || '';
  const shown = visible(href.length > MAX_LENGTH ? `${href.slice(0, MAX_LENGTH)}…` : href);
  const mayFollow = kind !== 'other' && isLink(href);
  const address = mayFollow
    ? h('a', { class: 'mono', href, target: '_blank', rel: 'noopener noreferrer' }, h('bdi', {}, shown))
    : h('bdi', { class: 'mono soft', title: 'Not clickable: only web and mail links can be opened.' }, shown);
  return h('li', { class: 'link' },
    h('div', { class: 'link-words' }, words && words !== shown && h('bdi', { class: 'link-text' }, words), address),
    h('span', { class: 'badge' }, SOURCES[where] ?? where),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the URL ${shown}`, title: 'Copy the URL', onclick: () => copy(href, 'URL copied') }, icon('copy')));
}

customElements.define('message-links', MessageLinks);
