// Module hooks that load `cypress-mailpit` as a bundler does: its files are ES modules without a declaration of that, and
// import each other without a file name extension.

const isOfPackage = (url) => url?.includes("/node_modules/cypress-mailpit/");

export function resolve(specifier, context, next) {
    const incomplete = isOfPackage(context.parentURL) && specifier.startsWith(".") && !specifier.endsWith(".js");
    return next(incomplete ? `${specifier}.js` : specifier, context);
}

export function load(url, context, next) {
    return next(url, isOfPackage(url) ? { ...context, format: "module" } : context);
}
