// A module of components that the first page does not need: loaded in the background, or at the first use.
import { createElement, lazy, useState, type ComponentType, type ReactElement } from "react";

/**
 * `Part` renders what `pick` returns, and suspends while the module loads; a part that is first
 * rendered afterwards does not suspend. `load` may be called often. `loaded` throws before.
 */
export function lateModule<Props extends object, Module>(
  get: () => Promise<Module>,
  pick: (module: Module) => ComponentType<Props>,
) {
  let module: Module | undefined;
  let pending: Promise<Module> | undefined;
  const wait = () => {
    pending ??= get().then(
      (loaded) => (module = loaded),
      (error: unknown) => {
        pending = undefined; // the next use tries again
        throw error;
      },
    );
    return pending;
  };
  // A failure is reported where the part is rendered.
  const load = () =>
    wait().then(
      () => undefined,
      () => undefined,
    );
  const loaded = (): Module => {
    if (!module) throw new Error("the module is not loaded");
    return module;
  };
  function Part(props: Props): ReactElement {
    const [component] = useState<ComponentType<Props>>(() =>
      module ? pick(module) : lazy(async () => ({ default: pick(await wait()) })),
    );
    return createElement(component, props);
  }
  return { Part, load, loaded };
}
