// Label of a required field. Other programs find the field by its asterisk; screen readers skip it.
export function RequiredLabel({ children }: { children: string }) {
  return (
    <>
      {children}
      <span aria-hidden="true" className="text-bad">
        {" *"}
      </span>
    </>
  );
}
