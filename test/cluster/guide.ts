export function tellGuide(): void {}
