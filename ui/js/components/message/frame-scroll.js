// Lets the headline scroll away before the content of a frame scrolls. The page cannot see how far a sandboxed frame has scrolled, and
// a wheel or a finger over a frame scrolls the frame first. So the frame cannot scroll until the headline is out of view.

/**
 * Updates whether a frame can scroll, now and whenever the view scrolls or changes its size.
 * @param {() => HTMLElement | null} frame
 * @param {HTMLElement} view The element that scrolls.
 * @param {HTMLElement} start The first element that stays in view.
 * @param {AbortSignal} signal
 * @returns {() => void} Updates it once, for a new frame.
 */
export function scrollViewFirst(frame, view, start, signal) {
  const update = () => {
    const isAway = view.scrollTop >= start.offsetTop - 1 || view.scrollTop + view.clientHeight >= view.scrollHeight - 1;
    const wanted = isAway ? 'auto' : 'no';
    const element = frame();
    if (element && element.getAttribute('scrolling') !== wanted) element.setAttribute('scrolling', wanted);
  };
  view.addEventListener('scroll', update, { passive: true, signal });
  const observer = new ResizeObserver(update);
  observer.observe(view);
  observer.observe(start);
  signal.addEventListener('abort', () => observer.disconnect());
  return update;
}
