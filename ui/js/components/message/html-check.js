// <message-html-check>: which mail clients support the HTML and CSS of a message: the score, the clients, and the features with the
// lines that use them.

/** @import { HtmlCheck, HtmlCheckFeature, HtmlCheckScore, Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { fill, h } from '../../lib/dom.js';
import { plural } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller } from './controls.js';
import { LazyPanel } from './lazy-panel.js';
import { tableRow, withShowMore } from './show-more.js';

const FIRST_FEATURES = 25;
const FIRST_CLIENTS = 12;

/** The number of lines that are named; the others are counted. */
const MAX_LINES = 8;

/** @extends {LazyPanel<HtmlCheck>} */
export class MessageHtmlCheck extends LazyPanel {
  /** @param {Message} message */
  constructor({ id }) {
    super((signal) => api.htmlCheck(id, signal), draw);
  }
}

/** @param {HtmlCheck} check */
function draw({ score, elements, truncated, features, clients, 'data-date': date }) {
  const body = scroller('HTML check', 'message-html-check');
  const names = new Map(clients.map((client) => [client.family, client['family-name']]));
  const limited = features.filter(({ score }) => score.supported < 100);
  fill(body,
    h('section', { class: 'check-total' },
      h('p', { class: 'check-score' }, h('b', {}, percent(score.supported)), ' supported'),
      bar(score),
      h('p', { class: 'soft' }, `${percent(score.partial)} partially supported, ${percent(score.unsupported)} not supported. ${plural(elements, 'element')}, ${plural(features.length, 'feature')}.`),
      truncated && h('p', { class: 'check-note' }, icon('warning'), 'The message is too large: a part of it was not checked.')),
    h('section', {}, h('h2', {}, 'Features that some clients do not support'), limited.length > 0 ? featureList(limited, names) : h('p', { class: 'soft' }, 'None. All clients support the HTML of this message.')),
    clients.length > 0 && h('section', {}, h('h2', {}, 'Clients'), clientTable(clients)),
    h('p', { class: 'soft check-source' }, `Data of ${date}: `, h('a', { href: 'https://www.caniemail.com/', target: '_blank', rel: 'noopener noreferrer' }, 'Can I email'), '. No request leaves your browser before you open a link.'));
  return [body];
}

/**
 * @param {HtmlCheckFeature[]} features
 * @param {Map<string, string>} names The names of the client families.
 */
function featureList(features, names) {
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
  return h('ul', { class: 'check-features' }, withShowMore(features, (one) => feature(one, names), { first: FIRST_FEATURES, wrap }));
}

/**
 * @param {HtmlCheckFeature} feature
 * @param {Map<string, string>} names
 */
function feature({ title, category, url, count, lines, score, clients }, names) {
  const name = url === null ? h('span', {}, title) : h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, title);
  const families = (/** @type {'no' | 'partial'} */ wanted) => [...new Set(clients.filter(({ support }) => support === wanted).map(({ family }) => names.get(family) ?? family))];
  const lacking = families('no');
  const partly = families('partial').filter((family) => !lacking.includes(family));
  return h('li', { class: 'check-feature' },
    h('div', { class: 'check-words' },
      h('span', { class: 'check-name' }, name, ' ', h('span', { class: 'badge' }, category)),
      h('span', { class: 'soft' }, [plural(count, 'use'), lineList(lines)].filter(Boolean).join(', ')),
      lacking.length > 0 && h('span', {}, `Not in ${lacking.join(', ')}`),
      partly.length > 0 && h('span', { class: 'soft' }, `Partly in ${partly.join(', ')}`)),
    h('div', { class: 'check-support' }, h('span', {}, percent(score.supported)), bar(score)));
}

/** @param {number[]} lines */
function lineList(lines) {
  if (lines.length === 0) return '';
  const named = lines.slice(0, MAX_LINES).join(', ');
  const more = lines.length > MAX_LINES ? ` and ${lines.length - MAX_LINES} more` : '';
  return `${lines.length === 1 ? 'line' : 'lines'} ${named}${more}`;
}

/** @param {HtmlCheck['clients']} clients */
function clientTable(clients) {
  const titles = ['Client', 'Supported', 'Partially', 'Not supported'].map((title) => h('th', { scope: 'col' }, title));
  const row = (/** @type {HtmlCheck['clients'][number]} */ client) => h('tr', {},
    h('th', { scope: 'row' }, client['family-name'], ' ', h('span', { class: 'soft' }, client['platform-name'])),
    [client.supported, client.partial, client.unsupported].map((value) => h('td', { class: 'number' }, value)));
  return h('table', { class: 'check-clients' }, h('caption', { class: 'hidden' }, 'Number of features that each client supports'),
    h('thead', {}, h('tr', {}, titles)),
    h('tbody', {}, withShowMore(clients, row, { first: FIRST_CLIENTS, wrap: tableRow(titles.length) })));
}

/**
 * A bar with the shares of a score. The numbers are next to it.
 * @param {HtmlCheckScore} score
 */
function bar({ supported, partial, unsupported }) {
  const part = (/** @type {string} */ kind, /** @type {number} */ value) => {
    const element = h('span', { class: kind });
    element.style.setProperty('flex-grow', String(value));
    return element;
  };
  return h('div', { class: 'check-bar', 'aria-hidden': 'true' }, part('good', supported), part('fair', partial), part('bad', unsupported));
}

/** @param {number} value */
const percent = (value) => `${Math.round(value * 10) / 10} %`;

customElements.define('message-html-check', MessageHtmlCheck);
