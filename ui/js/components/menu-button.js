// A button that opens a menu: arrow keys, Home, End and letters move in it, Escape closes it and returns the focus to the button.

/** @import { Child } from '../lib/dom.js' */

import { fill, h } from '../lib/dom.js';
import { visible } from '../lib/visible.js';

/**
 * An entry of a menu: a link if it has `href`, otherwise a button.
 * @typedef {object} MenuItem
 * @property {string} label
 * @property {string} [detail] More words after the label.
 * @property {string} [href]
 * @property {boolean} [download] True if the link is saved as a file, otherwise it is a page.
 * @property {() => void} [run]
 * @property {boolean} [checked] Given if one entry of the menu is selected.
 * @property {boolean} [disabled]
 */

/** The distance between the button and the menu, and between the menu and the window. */
const GAP_PX = 4;

let menus = 0;

/**
 * Creates a button with a menu.
 * @param {{ class?: string, title?: string, label?: string }} attributes `label` is the name of the menu.
 * @param {Child[]} content The content of the button.
 * @param {() => MenuItem[]} items Called each time the menu opens.
 */
export function menuButton({ class: kind = 'button', title, label }, content, items) {
  const id = `menu-${(menus += 1)}`;
  const menu = h('div', { class: 'menu sheet', role: 'menu', id, popover: 'auto', 'aria-label': label ?? title });
  const button = h('button', { class: kind, type: 'button', title, 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-controls': id }, ...content);
  const root = h('span', { class: 'menu-root' }, button, menu);
  const entries = () => /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('[role^=menuitem]:not([aria-disabled])')]);

  const draw = () => fill(menu, items().map((item) => entry(item, () => menu.hidePopover())));
  const open = (/** @type {'first' | 'last'} */ focused = 'first') => {
    draw();
    menu.showPopover();
    place(menu, button);
    const all = entries();
    (focused === 'last' ? all.at(-1) : all.find((one) => one.getAttribute('aria-checked') === 'true') ?? all[0])?.focus();
  };
  // A click on the button of an open menu closes it; the browser has closed it already when the click arrives.
  let wasOpen = false;
  button.addEventListener('pointerdown', () => (wasOpen = menu.matches(':popover-open')));
  button.addEventListener('click', () => {
    if (!wasOpen) open();
    wasOpen = false;
  });
  button.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    event.stopPropagation();
    open(event.key === 'ArrowUp' ? 'last' : 'first');
  });
  menu.addEventListener('toggle', (event) => button.setAttribute('aria-expanded', String(/** @type {ToggleEvent} */ (event).newState === 'open')));
  menu.addEventListener('beforetoggle', (event) => {
    // The focus is in the menu only if the user has not clicked elsewhere.
    if (/** @type {ToggleEvent} */ (event).newState === 'closed' && menu.contains(document.activeElement)) button.focus({ preventScroll: true });
  });
  menu.addEventListener('keydown', (event) => move(event, entries(), menu));
  /** Changes the title of the button and the name of the menu. */
  const setTitle = (/** @type {string} */ text) => {
    button.title = text;
    menu.setAttribute('aria-label', text);
  };
  /** Updates the entries of an open menu. The focus keeps its place. */
  const refresh = () => {
    if (!menu.matches(':popover-open')) return;
    const focused = entries().findIndex((one) => one === document.activeElement);
    draw();
    entries()[focused]?.focus();
  };
  return { root, button, setTitle, refresh };
}

/**
 * @param {MenuItem} item
 * @param {() => void} close
 */
function entry({ label, detail, href, download, run, checked, disabled }, close) {
  const attributes = { class: 'menu-item', role: checked === undefined ? 'menuitem' : 'menuitemradio', tabindex: -1, 'aria-checked': checked === undefined ? null : String(checked), 'aria-disabled': disabled && 'true' };
  const words = [h('bdi', { class: 'menu-label' }, visible(label)), detail && h('span', { class: 'soft' }, visible(detail))];
  if (disabled) return h('span', attributes, ...words);
  const act = () => {
    close();
    run?.();
  };
  if (href === undefined) return h('button', { ...attributes, type: 'button', onclick: act }, ...words);
  return h('a', { ...attributes, href, download, onclick: act }, ...words);
}

/**
 * Moves the focus in a menu. No key leaves the menu, so that no shortcut of the page runs.
 * @param {KeyboardEvent} event
 * @param {HTMLElement[]} all
 * @param {HTMLElement} menu
 */
function move(event, all, menu) {
  event.stopPropagation();
  const { key } = event;
  const at = all.findIndex((one) => one === document.activeElement);
  if (key === 'Tab' || key === 'Escape') {
    if (key === 'Escape') event.preventDefault();
    menu.hidePopover();
    return;
  }
  /** @type {Record<string, number>} */
  const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
  const letter = key.length === 1 && key !== ' ' && !event.ctrlKey && !event.altKey && !event.metaKey;
  const next = key in steps ? all.at(steps[key] % all.length) : letter ? startingWith(key, [...all.slice(at + 1), ...all]) : null;
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/**
 * @param {string} letter
 * @param {HTMLElement[]} all
 */
const startingWith = (letter, all) => all.find((one) => one.textContent?.toLowerCase().startsWith(letter.toLowerCase()));

/**
 * Places a menu below its button, or above it if there is more room.
 * @param {HTMLElement} menu
 * @param {HTMLElement} button
 */
function place(menu, button) {
  const { left, right, top, bottom } = button.getBoundingClientRect();
  const { clientWidth: width, clientHeight: height } = document.documentElement;
  const below = height - bottom >= menu.offsetHeight + 2 * GAP_PX || height - bottom >= top;
  const start = left + menu.offsetWidth + GAP_PX <= width ? left : right - menu.offsetWidth;
  menu.style.left = `${Math.max(GAP_PX, start)}px`;
  menu.style.top = below ? `${bottom + GAP_PX}px` : `${Math.max(GAP_PX, top - menu.offsetHeight - GAP_PX)}px`;
  menu.style.maxHeight = `${(below ? height - bottom : top) - 2 * GAP_PX}px`;
}
