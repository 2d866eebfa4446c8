// The frame around the pages: which one is shown, the bar on top of it, and the keys that work everywhere.

/** @import { Route } from './types.js' */

import * as api from './lib/api.js';
import * as connection from './lib/connection.js';
import * as keys from './lib/keys.js';
import * as paths from './lib/paths.js';
import * as prefs from './lib/prefs.js';
import * as theme from './lib/theme.js';
import { fill, find, h } from './lib/dom.js';
import { icon } from './lib/icons.js';
import { go, moves } from './lib/router.js';
import { show } from './lib/talk.js';
import { title } from './lib/title.js';
import './components/time-ago.js';
import './pages/home.js';
import './pages/mailbox.js';
import './pages/monitor.js';
import './pages/status.js';

/**
 * A page is an element. It is told its route before it is put into the document, and again when only the route changes.
 * @typedef {HTMLElement & { route: Route }} Page
 */

const place = find(document, '#page', HTMLElement);

/** Makes the addresses in the frame whole: they are relative to where it was loaded, and a move goes elsewhere. */
function anchor() {
  /** @type {NodeListOf<HTMLAnchorElement | HTMLLinkElement>} */
  const links = document.querySelectorAll('.bar a, link[rel=icon]');
  for (const link of links) link.setAttribute('href', link.href);
}

/** Shows the page that the address means. */
function arrive() {
  const route = paths.route(location);
  for (const link of document.querySelectorAll('[data-place]')) {
    const here = link instanceof HTMLElement && link.dataset.place === route.page;
    link.toggleAttribute('aria-current', here);
    if (here) link.setAttribute('aria-current', 'page');
  }
  const name = `${route.page}-page`;
  const shown = place.firstElementChild;
  if (shown?.localName === name && customElements.get(name)) {
    /** @type {Page} */ (shown).route = route;
    return;
  }
  const page = /** @type {Page} */ (document.createElement(name));
  page.route = route;
  place.replaceChildren(page);
  place.scrollTop = 0;
}

/** What is shown at an address that means nothing. */
class MissingPage extends HTMLElement {
  route = /** @type {Route} */ ({ page: 'missing' });

  connectedCallback() {
    title('Nothing here');
    fill(this, h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, 'There is nothing here.'), h('a', { href: paths.home() }, 'Go to the start')));
  }
}
customElements.define('missing-page', MissingPage);

function gotoForm() {
  const form = find(document, '.goto', HTMLFormElement);
  const input = find(form, 'input', HTMLInputElement);
  const known = find(form, 'datalist', HTMLDataListElement);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    input.value = '';
    input.blur();
    go(paths.mailbox(name));
  });
  const remember = () => fill(known, prefs.recent().map((name) => h('option', { value: name })));
  window.addEventListener('restante:recent', remember);
  remember();
  const focus = () => {
    const larger = document.querySelector('#open-mailbox');
    (larger instanceof HTMLInputElement ? larger : input).focus();
  };
  keys.add([{ keys: ['o'], group: 'Everywhere', label: 'Open a mailbox', run: focus }]);
  input.addEventListener('keydown', (event) => event.key === 'Escape' && input.blur());
}

function themeButton() {
  const button = find(document, '[data-tool=theme]', HTMLButtonElement);
  const words = { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' };
  const draw = () => {
    const now = theme.chosen();
    fill(button, icon(now));
    button.title = words[now];
    button.setAttribute('aria-label', words[now]);
  };
  button.addEventListener('click', () => {
    theme.next();
    draw();
  });
  theme.apply();
  draw();
  button.hidden = false;
}

function connectionSign() {
  const sign = find(document, '.connection', HTMLElement);
  connection.changes.addEventListener('change', () => {
    sign.textContent = connection.isLost() ? 'Connection lost, trying again…' : '';
    sign.hidden = !connection.isLost();
  });
}

function help() {
  const list = h('dl', { class: 'keys' });
  for (const [group, shortcuts] of keys.byGroup()) {
    list.append(h('h3', {}, group));
    for (const { keys: combinations, label } of shortcuts) {
      const signs = combinations.flatMap((keys, index) => [index > 0 && ' or ', ...(keys === ' ' ? [keys] : keys.split(' ')).map((key) => h('kbd', {}, SIGNS[key] ?? key))]);
      list.append(h('dt', {}, signs), h('dd', {}, label));
    }
  }
  show('Keyboard shortcuts', list, h('div', { class: 'row' }, h('button', { class: 'button', autofocus: true }, 'Close')));
}

/** @type {Record<string, string>} */
const SIGNS = { ArrowDown: '↓', ArrowUp: '↑', Delete: 'Del', Escape: 'Esc', ' ': 'Space' };

async function monitorLink() {
  const server = await api.about().catch(() => null);
  // A server that cannot be asked now may still have one.
  find(document, '[data-place=monitor]', HTMLElement).hidden = server?.['monitor-visible'] === false;
}

anchor();
const helpButton = find(document, '[data-tool=help]', HTMLButtonElement);
helpButton.addEventListener('click', help);
helpButton.hidden = false;
keys.add([
  { keys: ['?'], group: 'Everywhere', label: 'This help', run: help },
  { keys: ['g h'], group: 'Everywhere', label: 'Go to the start', run: () => go(paths.home()) },
  { keys: ['g m'], group: 'Everywhere', label: 'Go to the monitor', run: () => go(paths.monitor()) },
  { keys: ['g s'], group: 'Everywhere', label: 'Go to the status', run: () => go(paths.status()) },
]);
gotoForm();
themeButton();
connectionSign();
monitorLink();
moves.addEventListener('move', arrive);
arrive();
