"""The page's style: one column of cards, readable on a phone, on a desk and on paper."""

from __future__ import annotations

from nnbuild.report.palette import as_css

RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
  font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
  overflow-wrap:break-word}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:2rem;line-height:1.2;margin:0;letter-spacing:-.01em}
h2{font-size:1.25rem;margin:0 0 12px}
h3{font-size:1rem;margin:20px 0 8px}
p{margin:0 0 12px;max-width:74ch}
.soft,small,caption,.under{color:var(--soft)}
small{display:block;font-size:.78rem;font-weight:400;line-height:1.35}
a{color:var(--accent)}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--paper);padding:8px}
.title{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:center;margin-bottom:6px}
.badge{font-weight:700;font-size:.85rem;letter-spacing:.04em;padding:3px 12px;border-radius:99px;
  border:2px solid currentColor}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
nav{margin:14px 0 0;border-bottom:1px solid var(--rule)}
nav ul{display:flex;flex-wrap:wrap;gap:2px 18px;list-style:none;margin:0;padding:0 0 10px}
nav a{text-decoration:none;font-size:.92rem;display:inline-block;padding:3px 0}nav a:hover{
  text-decoration:underline}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(220px,1fr));gap:12px;margin:20px 0 0;padding:0}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px;margin:0}
.tile dt{font-size:.8rem;color:var(--soft)}
.tile dd{margin:0;font-size:1.45rem;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}
.tile dd+dd{font-size:.8rem;font-weight:400;color:var(--soft);line-height:1.35}
section{margin:38px 0 0}
.notes{margin:16px 0 0;padding:10px 14px 10px 32px;border-left:4px solid var(--warn);background:var(--card);
  font-size:.92rem}
.strips{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:26px 28px;
  align-items:start}
svg{display:block;width:100%;height:auto;font-family:inherit;font-variant-numeric:tabular-nums}
.narrow{display:none}
.key{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;margin:10px 0 0;padding:0;font-size:.82rem;
  color:var(--soft)}
.key li{display:flex;align-items:center;gap:6px}
.key i{width:12px;height:12px;border-radius:3px;display:inline-block}
.scroll{overflow-x:auto;margin:0 0 14px;border:1px solid var(--rule);border-radius:10px}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-size:.82rem;padding:8px 12px 6px;position:sticky;left:0}
th,td{padding:6px 12px;text-align:left;vertical-align:top;border-top:1px solid var(--rule)}
thead th{font-size:.78rem;color:var(--soft);font-weight:600;white-space:nowrap;background:var(--card);
  vertical-align:bottom}
tbody th{font-weight:600;white-space:nowrap}tbody th small{white-space:normal;min-width:9rem}
.scroll:has(.fit){width:fit-content;max-width:100%}.after{margin-top:14px}
tfoot th,tfoot td{font-weight:650;background:var(--card)}
.n{text-align:right;white-space:nowrap}
.code,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.82rem;
  font-weight:400}
td.code{overflow-wrap:anywhere}td.hash{min-width:19rem}
.bar{display:block;height:6px;min-width:46px;background:var(--bar-back);border-radius:3px;margin:5px 0 3px;
  overflow:hidden}
small.with{display:flex;align-items:center;gap:7px;justify-content:flex-end}.with .bar{flex:1;margin:0}
.with span{min-width:3.5em}.with span:empty{display:none}
.bar b{display:block;height:100%;background:var(--bar);border-radius:3px}
.heat{background:color-mix(in srgb,var(--bar) var(--heat),var(--paper))}
.confusion{width:auto}.confusion td,.confusion th{padding:4px 9px;text-align:right;border:1px solid var(--rule)}
.confusion .hit{font-weight:700}.confusion thead th{text-align:right}.confusion caption{position:static}
.memory{margin:0 0 18px}
.memory p{margin:0 0 4px}
.stack{display:flex;height:26px;border-radius:6px;overflow:hidden;background:var(--bar-back);
  border:1px solid var(--rule)}
.stack b{display:block;min-width:2px;border-right:1px solid var(--paper)}
pre{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px;margin:0 0 14px;
  white-space:pre-wrap;overflow-wrap:anywhere}
footer{margin-top:44px;padding-top:14px;padding-bottom:36px;color:var(--soft);font-size:.82rem}
footer p{border-top:1px solid var(--rule);padding-top:14px;max-width:none}
@media (max-width:640px){
main,header,footer{padding-left:14px;padding-right:14px}
h1{font-size:1.55rem}header{padding-top:18px}
.tiles{grid-template-columns:1fr 1fr;gap:8px}.tile{padding:10px 11px}.tile dd{font-size:1.2rem}
.wide{display:none}.narrow{display:block}
.strips{row-gap:0}
th,td{padding:6px 8px}table{font-size:.82rem}
caption{max-width:calc(100vw - 30px)}
tbody th{min-width:7rem}
thead th:first-child,tbody th,tfoot th{position:sticky;left:0;background:var(--paper);z-index:1}
thead th:first-child,tfoot th{background:var(--card)}
.confusion tbody th{min-width:0}
}
@media print{
@page{margin:14mm}
html{font-size:10.5px}body{font-size:1rem}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
nav,.skip{display:none}
main,header,footer{max-width:none;padding:0}
.wide{display:block}.narrow{display:none}
.scroll{overflow:visible;border:0}
section{margin-top:22px}h2{break-after:avoid}tr,svg,.tile,.memory{break-inside:avoid}thead{
  display:table-header-group}
.strips{grid-template-columns:repeat(3,1fr)}
.tiles{grid-template-columns:repeat(4,1fr)}
th,td{padding:3px 5px}table{font-size:.85rem}tbody th{white-space:normal}tbody th,td{overflow-wrap:anywhere}
.bar{min-width:26px}.n small{white-space:normal}.n small.with{white-space:nowrap}
td.code{font-size:.7rem}td.hash{min-width:0}
a{color:inherit;text-decoration:none}
}
"""


def css() -> str:
    return as_css() + RULES
