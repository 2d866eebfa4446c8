// The search field in the bar. It searches the mailbox that is shown, or all mailboxes on other pages. The results are on the
// search page, which has its own field.

/** @import { Route } from '../types.js' */

import * as keys from './keys.js';
import * as paths from './paths.js';
import { fill, find } from './dom.js';
import { icon } from './icons.js';
import { go } from './router.js';
import { visible } from './visible.js';

/**
 * Sets up the field. Returns a function to call for each page that is shown.
 * @returns {(route: Route) => void}
 */
export function setUpSearchField() {
  const form = find(document, '.search-form', HTMLFormElement);
  const input = find(form, 'input', HTMLInputElement);
  const link = find(document, '.search-link', HTMLAnchorElement);
  /** @type {string | null} */
  let mailbox = null;
  form.prepend(icon('search'));
  fill(link, icon('search'));
  input.addEventListener('keydown', ({ key, isComposing }) => key === 'Escape' && !isComposing && input.value === '' && input.blur());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const query = input.value.trim();
    input.value = '';
    input.blur();
    go(paths.search({ query, mailbox }));
  });
  // On narrow screens a link to the search page replaces the field.
  const focus = () => (input.checkVisibility({ visibilityProperty: true }) ? input.focus() : link.click());
  keys.add([{ keys: ['s', '/'], group: 'Everywhere', label: 'Search messages', run: focus }]);
  return (route) => {
    mailbox = route.page === 'mailbox' ? route.mailbox : null;
    const label = mailbox === null ? 'Search all messages' : `Search in ${visible(mailbox)}`;
    input.placeholder = `${label}…`;
    input.ariaLabel = label;
    link.href = paths.search({ mailbox });
  };
}
