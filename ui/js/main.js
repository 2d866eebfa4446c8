// The frame of all pages: routing, the bar at the top, and the keyboard shortcuts that work on every page.

/** @import { Route } from './types.js' */

import * as api from './lib/api.js';
import * as connection from './lib/connection.js';
import * as keys from './lib/keys.js';
import * as paths from './lib/paths.js';
import * as login from './lib/login.js';
import * as theme from './lib/theme.js';
import { fill, find, h, set } from './lib/dom.js';
import { discardRest } from './lib/early.js';
import { openComposeDialog } from './components/compose-dialog.js';
import { ignoreOtherDrops } from './components/import-files.js';
import { openMailboxDialog } from './components/open-mailbox-dialog.js';
import { projects } from './lib/projects.js';
import { setUpMenu } from './lib/menu.js';
import { icon } from './lib/icons.js';
import { go, moves } from './lib/router.js';
import { isSameScope } from './lib/scope.js';
import { setUpSearchField } from './lib/search-field.js';
import { closeDialogs, openDialog } from './lib/feedback.js';
import { visible } from './lib/visible.js';
import './components/time-ago.js';
import './pages/docs.js';
import './pages/mail.js';
import './pages/missing.js';
import './pages/relay.js';
import './pages/send.js';
import './pages/sessions.js';
import './pages/settings.js';
import './pages/status.js';
import './pages/webhooks.js';

/**
 * A page is an element. `route` is set before the element is added to the document, and again when only the route changes.
 * @typedef {HTMLElement & { route?: Route }} Page
 */

const main = find(document, '#page', HTMLElement);
const updateSearchField = setUpSearchField();
/** @type {Route} */
let shownRoute = { page: 'missing' };

/** Makes the links of the frame absolute. They are relative to the first page, and navigation changes the address. */
function makeLinksAbsolute() {
  /** @type {NodeListOf<HTMLAnchorElement | HTMLLinkElement>} */
  const links = document.querySelectorAll('.bar a, link[rel=icon]');
  for (const link of links) link.setAttribute('href', link.href);
}

/**
 * Returns the entry of the navigation for a page.
 * @param {Route} route
 */
function navigationEntry(route) {
  return route.page === 'mail' && route.scope.mailbox === null && route.scope.query === '' ? 'inbox' : route.page;
}

/** Shows the page of the current address. */
function showPage() {
  const route = shownRoute = paths.route(location);
  for (const link of document.querySelectorAll('[data-page]')) {
    set(link, { 'aria-current': link.getAttribute('data-page') === navigationEntry(route) && 'page' });
  }
  document.body.dataset.shown = route.page;
  updateSearchField(route);
  const name = `${route.page}-page`;
  const shown = main.firstElementChild;
  if (shown?.localName === name && customElements.get(name)) {
    /** @type {Page} */ (shown).route = route;
    return;
  }
  const page = /** @type {Page} */ (document.createElement(name));
  page.route = route;
  main.replaceChildren(page);
  main.scrollTop = 0;
}

/** Returns whether two pages are the same list of messages. @param {Route} a @param {Route} b */
const isSameList = (a, b) => a.page === 'mail' && b.page === 'mail' && isSameScope(a.scope, b.scope);

/**
 * Shows the page after a navigation and focuses its heading, so that a screen reader announces the page.
 * @param {'push' | 'replace' | 'pop'} kind
 */
function navigate(kind) {
  // A page can open a message while a dialog is open.
  if (kind === 'pop' || (kind === 'push' && !isSameList(shownRoute, paths.route(location)))) closeDialogs();
  const before = main.firstElementChild;
  showPage();
  // The focus stays if the page is the same element, or if the page has already set the focus.
  const focused = document.activeElement;
  if (main.firstElementChild === before || (focused !== main && main.contains(focused))) return;
  const heading = main.querySelector('h1');
  if (heading) set(heading, { tabindex: -1 });
  heading?.focus({ preventScroll: true });
  // On a narrow screen the heading can be hidden.
  if (document.activeElement !== heading) main.focus({ preventScroll: true });
}

function setUpMailboxButton() {
  const button = find(document, '[data-tool=mailbox]', HTMLButtonElement);
  fill(button, icon('mailbox'));
  button.addEventListener('click', openMailboxDialog);
  // The field of the page, or a dialog.
  const open = () => {
    const field = document.querySelector('#open-mailbox');
    if (field instanceof HTMLInputElement && field.checkVisibility({ visibilityProperty: true })) field.focus();
    else openMailboxDialog();
  };
  keys.add([{ keys: ['o'], group: 'Everywhere', label: 'Open a mailbox', run: open }]);
}

function setUpThemeButton() {
  const button = find(document, '[data-tool=theme]', HTMLButtonElement);
  const labels = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
  const draw = () => {
    const now = theme.chosen();
    fill(button, icon(now));
    button.title = labels[now];
    button.setAttribute('aria-label', labels[now]);
  };
  const applyTheme = () => {
    theme.apply();
    draw();
  };
  button.addEventListener('click', theme.next);
  window.addEventListener('restante:theme', applyTheme);
  applyTheme();
  button.classList.remove('pending');
}

function setUpConnectionStatus() {
  const status = find(document, '.connection', HTMLElement);
  connection.changes.addEventListener('change', () => {
    status.textContent = connection.isLost() ? 'Connection lost. Reconnecting…' : '';
    status.hidden = !connection.isLost();
  });
}

function showHelp() {
  const close = h('button', { class: 'button plain dialog-close', 'aria-label': 'Close', title: 'Close (Esc)' }, icon('close'));
  const groups = [...keys.byGroup()].map(([group, shortcuts]) => h('section', {}, h('h3', {}, group), h('dl', {}, shortcuts.flatMap(describeShortcut))));
  // The focus makes the list scrollable by keyboard.
  openDialog('Keyboard shortcuts', close, h('div', { class: 'keys', tabindex: 0, role: 'group', 'aria-label': 'All shortcuts' }, ...groups));
}

/** @param {keys.Shortcut} shortcut */
function describeShortcut({ keys: combinations, label }) {
  const names = combinations.flatMap((keys, index) => [index > 0 && ' or ', ...(keys === ' ' ? [keys] : keys.split(' ')).map((key) => h('kbd', {}, KEY_NAMES[key] ?? key))]);
  return [h('dt', {}, names), h('dd', {}, label)];
}

/** @type {Record<string, string>} */
const KEY_NAMES = { ArrowDown: '↓', ArrowUp: '↑', Delete: 'Del', Escape: 'Esc', ' ': 'Space' };

/** Updates the parts of the bar that depend on the server. */
async function updateServerParts() {
  const server = await api.about().catch(() => null);
  // If the monitor is disabled, the inbox, the sessions, the relay, the webhooks and the search in all mailboxes are hidden. They stay if the request fails.
  document.documentElement.toggleAttribute('data-monitor-hidden', server?.['monitor-visible'] === false);
  // Before the other parts are shown, so that they do not move.
  if (server) {
    find(document, '.main-nav [data-page=relay]', HTMLElement).hidden = !server.relay?.length;
    find(document, '.main-nav [data-page=webhooks]', HTMLElement).hidden = !server.webhooks;
  }
  for (const part of document.querySelectorAll('.pending')) part.classList.remove('pending');
  if (!server) return;
  document.documentElement.toggleAttribute('data-project', server.project !== null);
  projects.setCurrent(server.project);
  const account = find(document, '.account', HTMLElement);
  account.hidden = !server.locked;
  find(account, '.account-name', HTMLElement).textContent = visible(server.user ?? '');
}

makeLinksAbsolute();
const helpButton = find(document, '[data-tool=help]', HTMLButtonElement);
helpButton.addEventListener('click', showHelp);
helpButton.classList.remove('pending');
keys.add([
  { keys: ['?'], group: 'Everywhere', label: 'Show this help', run: showHelp },
  { keys: ['c'], group: 'Everywhere', label: 'Compose a message', run: () => openComposeDialog() },
  { keys: ['g i'], group: 'Everywhere', label: 'Go to the inbox', run: () => go(paths.inbox()) },
  { keys: ['g s'], group: 'Everywhere', label: 'Go to the status page', run: () => go(paths.status()) },
  { keys: ['g t'], group: 'Everywhere', label: 'Go to the SMTP sessions', run: () => go(paths.sessions()) },
  { keys: ['g r'], group: 'Everywhere', label: 'Go to the relay queue', run: () => go(paths.queue('relay')) },
  { keys: ['g w'], group: 'Everywhere', label: 'Go to the webhooks', run: () => go(paths.queue('webhooks')) },
  { keys: ['g ,'], group: 'Everywhere', label: 'Go to the settings', run: () => go(paths.settings()) },
]);
setUpMailboxButton();
setUpMenu();
setUpThemeButton();
setUpConnectionStatus();
ignoreOtherDrops();
find(document, '.account button', HTMLButtonElement).addEventListener('click', login.logOut);
updateServerParts();
// After a reconnect the server may have another configuration.
connection.changes.addEventListener('change', () => connection.isLost() || updateServerParts());
moves.addEventListener('move', (event) => navigate(/** @type {CustomEvent<'push' | 'replace' | 'pop'>} */ (event).detail));
showPage();
discardRest();
