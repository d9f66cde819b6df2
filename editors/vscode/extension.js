// Starts `torchdet-lint lsp` and hands it Python files and notebooks.
const { commands, workspace, window } = require("vscode");
const { LanguageClient, State } = require("vscode-languageclient/node");

let client;

function folder() {
  const folders = workspace.workspaceFolders;
  return folders && folders.length ? folders[0].uri.fsPath : "";
}

function make() {
  const configuration = workspace.getConfiguration("torchdet-lint");
  const [command, ...args] = configuration
    .get("command")
    .map((word) => word.replace("${workspaceFolder}", folder()));
  return new LanguageClient(
    "torchdet-lint",
    { command, args },
    {
      documentSelector: [
        { scheme: "file", language: "python" },
        { notebook: { notebookType: "jupyter-notebook" }, language: "python" },
      ],
      initializationOptions: { settings: configuration.get("settings") },
    },
  );
}

async function start() {
  client = make();
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `torchdet-lint does not start (${error.message}). Install it with pip install 'torchdet-lint[lsp]', or set torchdet-lint.command.`,
    );
  }
}

async function stop() {
  if (client && client.state !== State.Stopped) {
    await client.stop();
  }
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("torchdet-lint.restart", async () => {
      await stop();
      await start();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
