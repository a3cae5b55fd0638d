// The settings as a file, in the format of `coder organizations settings set`.
import { Download } from "lucide-react";

import { Button } from "../../ui/Button";

export function ExportPolicy({ name, policy }: { name: string; policy: object }) {
  const save = () => {
    const address = URL.createObjectURL(
      new Blob([JSON.stringify(policy, null, 2)], { type: "application/json" }),
    );
    const link = Object.assign(document.createElement("a"), { href: address, download: name });
    link.click();
    URL.revokeObjectURL(address);
  };
  return (
    <Button icon={<Download />} onClick={save}>
      Export policy
    </Button>
  );
}
