const BASE_URLS = {
  local: "http://localhost:8080",
  staging: "http://staging.chandler.example:8080",
};

export interface StockLine {
  sku: string;
  name: string;
  onHand: number;
  unitCost: number;
  reorderPoint: number;
}

export async function fetchStock(where: keyof typeof BASE_URLS, sku: string): Promise<StockLine> {
  const answer = await fetch(`${BASE_URLS[where]}/v1/stock/${encodeURIComponent(sku)}`);
  if (!answer.ok) throw new Error(`stock ${sku}: HTTP ${answer.status}`);
  return (await answer.json()) as StockLine;
}
