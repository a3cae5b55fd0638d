// A QR code as one path: dark on white in every theme, because cameras require it.
import qrcode from "qrcode-generator";

const QUIET = 4; // modules of white around the code, as the standard requires

export function QrCode({ text, label }: { text: string; label: string }) {
  const code = qrcode(0, "L");
  code.addData(text);
  code.make();
  const count = code.getModuleCount();
  let path = "";
  for (let row = 0; row < count; row += 1) {
    for (let column = 0; column < count; column += 1) {
      if (code.isDark(row, column)) path += `M${column + QUIET} ${row + QUIET}h1v1h-1z`;
    }
  }
  const side = count + 2 * QUIET;
  return (
    <svg
      role="img"
      aria-label={label}
      data-testid="qr"
      viewBox={`0 0 ${side} ${side}`}
      shapeRendering="crispEdges"
      className="w-full max-w-72 rounded-lg border border-line"
    >
      <rect width={side} height={side} fill="#ffffff" />
      <path d={path} fill="#000000" />
    </svg>
  );
}
