// The menu button of narrow screens. It shows and hides the navigation of the bar.

import { find, set } from './dom.js';
import { moves } from './router.js';

/** Sets up the button. */
export function setUpMenu() {
  const button = find(document, '[data-tool=menu]', HTMLButtonElement);
  const nav = find(document, '#main-nav', HTMLElement);
  const isOpen = () => button.ariaExpanded === 'true';
  const show = (/** @type {boolean} */ isShown) => {
    set(button, { 'aria-expanded': String(isShown) });
    nav.classList.toggle('open', isShown);
  };
  const isInside = (/** @type {EventTarget | null} */ target) => target instanceof Node && (nav.contains(target) || button.contains(target));
  button.addEventListener('click', () => show(!isOpen()));
  moves.addEventListener('move', () => show(false));
  // The link of the current page does not navigate.
  nav.addEventListener('click', () => show(false));
  document.addEventListener('pointerdown', ({ target }) => isInside(target) || show(false));
  // A focus that leaves the window has no target.
  nav.addEventListener('focusout', ({ relatedTarget }) => relatedTarget && !isInside(relatedTarget) && show(false));
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !isOpen()) return;
    event.preventDefault();
    show(false);
    button.focus();
  }, { capture: true });
  button.classList.remove('pending');
}
