// A search field above its results: the content of a combobox, and of a menu too long to read.
import { ChoiceOptions, useChoices, type Choice } from "./choices";

interface ChoiceListProps {
  id: string;
  value: string;
  options: readonly Choice[];
  onChange: (value: string) => void;
  /** Called with the typed text if the options come from the server. */
  onSearch?: ((text: string) => void) | undefined;
  /** Why the server’s options are missing. */
  failure?: string | undefined;
}

export function ChoiceList({ id, value, options, onChange, onSearch, failure }: ChoiceListProps) {
  const choices = useChoices({ id, value, options, onChange, onSearch });
  return (
    <>
      <input
        autoFocus
        type="text"
        aria-label="Search options"
        role="searchbox"
        aria-controls={`${id}-list`}
        aria-activedescendant={choices.active}
        value={choices.text}
        placeholder="Type to search"
        onKeyDown={choices.onKey}
        onChange={(event) => choices.search(event.target.value)}
        className="h-9 w-full border-b border-line bg-transparent px-3 text-base underlined"
      />
      {failure ? (
        <p role="alert" className="border-b border-line px-3 py-2 text-sm text-bad">
          {failure}
        </p>
      ) : null}
      <ChoiceOptions
        id={id}
        value={value}
        choices={choices}
        onChange={onChange}
        {...(failure ? { empty: "" } : {})}
      />
    </>
  );
}
