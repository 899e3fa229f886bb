// The button of the toolbar opens the side panel, where the model runs: service workers end when they are idle.
chrome.sidePanel.setPanelBehavior({ openPanelOnActionClick: true });
