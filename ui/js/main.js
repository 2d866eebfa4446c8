// The frame around the pages: which one is shown, the bar on top of it, and the keys that work everywhere.

/** @import { Route } from './types.js' */

import * as api from './lib/api.js';
import * as connection from './lib/connection.js';
import * as keys from './lib/keys.js';
import * as paths from './lib/paths.js';
import * as prefs from './lib/prefs.js';
import * as session from './lib/session.js';
import * as theme from './lib/theme.js';
import { fill, find, h, set } from './lib/dom.js';
import { opens } from './lib/go-to.js';
import { icon } from './lib/icons.js';
import { go, moves } from './lib/router.js';
import { seeker } from './lib/seek.js';
import { hush, show } from './lib/talk.js';
import { title } from './lib/title.js';
import { visible } from './lib/visible.js';
import './components/time-ago.js';
import './pages/home.js';
import './pages/mailbox.js';
import './pages/monitor.js';
import './pages/search.js';
import './pages/sessions.js';
import './pages/status.js';

/**
 * A page is an element. It is told its route before it is put into the document, and again when only the route changes.
 * @typedef {HTMLElement & { route?: Route }} Page
 */

const place = find(document, '#page', HTMLElement);
const NARROW = matchMedia('(max-width: 46rem)');
const seek = seeker();

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
    set(link, { 'aria-current': link.getAttribute('data-place') === route.page && 'page' });
  }
  seek(route);
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

/** Goes to another page, where the focus goes to its heading: so a screen reader tells where it is. */
function move() {
  hush();
  const before = place.firstElementChild;
  arrive();
  // It may be the same page, or one that knows better where the focus belongs.
  const focused = document.activeElement;
  if (place.firstElementChild === before || (focused !== place && place.contains(focused))) return;
  const heading = place.querySelector('h1');
  if (heading) set(heading, { tabindex: -1 });
  heading?.focus({ preventScroll: true });
  // On a narrow screen the heading may not be shown.
  if (document.activeElement !== heading) place.focus({ preventScroll: true });
}

/** What is shown at an address that means nothing. */
class MissingPage extends HTMLElement {
  connectedCallback() {
    title('Nothing here');
    fill(this, h('div', { class: 'empty' }, icon('envelope'), h('h1', {}, 'There is nothing here.'), h('a', { href: paths.home() }, 'Go to the start')));
  }
}
customElements.define('missing-page', MissingPage);

function gotoForm() {
  const form = find(document, '.goto', HTMLFormElement);
  const input = find(form, 'input', HTMLInputElement);
  const known = find(form, 'datalist', HTMLDataListElement);
  const leaving = () => {
    input.value = '';
    input.blur();
  };
  opens(form, input, { leaving });
  const word = () => (input.placeholder = NARROW.matches ? 'Mailbox…' : 'Open a mailbox…');
  NARROW.addEventListener('change', word);
  word();
  const remember = () => fill(known, prefs.recent().map((name) => h('option', { value: name })));
  window.addEventListener('restante:recent', remember);
  remember();
  const focus = () => {
    const larger = document.querySelector('#open-mailbox');
    (larger instanceof HTMLInputElement ? larger : input).focus();
  };
  keys.add([{ keys: ['o'], group: 'Everywhere', label: 'Open a mailbox', run: focus }]);
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
  const dress = () => {
    theme.apply();
    draw();
  };
  button.addEventListener('click', theme.next);
  window.addEventListener('restante:theme', dress);
  dress();
  button.classList.remove('soon');
}

function connectionSign() {
  const sign = find(document, '.connection', HTMLElement);
  connection.changes.addEventListener('change', () => {
    sign.textContent = connection.isLost() ? 'Connection lost, trying again…' : '';
    sign.hidden = !connection.isLost();
  });
}

function help() {
  const close = h('button', { class: 'button plain dialog-close', 'aria-label': 'Close', title: 'Close (Esc)' }, icon('close'));
  const groups = [...keys.byGroup()].map(([group, shortcuts]) => h('section', {}, h('h3', {}, group), h('dl', {}, shortcuts.flatMap(explained))));
  // It may have to be scrolled, which takes the focus where there is no wheel.
  show('Keyboard shortcuts', close, h('div', { class: 'keys', tabindex: 0, role: 'group', 'aria-label': 'All shortcuts' }, ...groups));
}

/** @param {keys.Shortcut} shortcut */
function explained({ keys: combinations, label }) {
  const signs = combinations.flatMap((keys, index) => [index > 0 && ' or ', ...(keys === ' ' ? [keys] : keys.split(' ')).map((key) => h('kbd', {}, SIGNS[key] ?? key))]);
  return [h('dt', {}, signs), h('dd', {}, label)];
}

/** @type {Record<string, string>} */
const SIGNS = { ArrowDown: '↓', ArrowUp: '↑', Delete: 'Del', Escape: 'Esc', ' ': 'Space' };

/** Shows in the bar what depends on the server. */
async function serverParts() {
  const server = await api.about().catch(() => null);
  const link = find(document, '[data-place=monitor]', HTMLElement);
  // A server that cannot be asked now may still have one.
  const isHidden = server?.['monitor-visible'] === false;
  link.hidden = isHidden;
  // Whose mail there is would be seen by searching all of it, too.
  document.documentElement.toggleAttribute('data-discreet', isHidden);
  for (const part of document.querySelectorAll('.soon')) part.classList.remove('soon');
  if (!server) return;
  const account = find(document, '.account', HTMLElement);
  account.hidden = !server.locked;
  find(account, '.account-name', HTMLElement).textContent = visible(server.user ?? '');
}

anchor();
const helpButton = find(document, '[data-tool=help]', HTMLButtonElement);
helpButton.addEventListener('click', help);
helpButton.classList.remove('soon');
keys.add([
  { keys: ['?'], group: 'Everywhere', label: 'This help', run: help },
  { keys: ['g h'], group: 'Everywhere', label: 'Go to the start', run: () => go(paths.home()) },
  { keys: ['g m'], group: 'Everywhere', label: 'Go to the monitor', run: () => go(paths.monitor()) },
  { keys: ['g s'], group: 'Everywhere', label: 'Go to the status', run: () => go(paths.status()) },
  { keys: ['g t'], group: 'Everywhere', label: 'Go to the SMTP sessions', run: () => go(paths.sessions()) },
]);
gotoForm();
themeButton();
connectionSign();
find(document, '.account button', HTMLButtonElement).addEventListener('click', session.end);
serverParts();
// It may be another server after that.
connection.changes.addEventListener('change', () => connection.isLost() || serverParts());
moves.addEventListener('move', move);
arrive();
