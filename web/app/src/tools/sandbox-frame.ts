// The script of the sandbox's frame. The page's policy allows it by its hash (`policy.ts`), so a change here changes that, too; a test
// compares them. It starts a worker with the text that the page sends, and passes on what the worker says.

export const FRAME_SCRIPT =
  'addEventListener("message",({data,ports:[port],source})=>{if(source!==parent||!port)return;' +
  'const worker=new Worker(URL.createObjectURL(new Blob([String(data)],{type:"text/javascript"})));' +
  "worker.onmessage=({data})=>port.postMessage(data);" +
  'worker.onerror=(event)=>{event.preventDefault();port.postMessage({type:"broken",message:String(event.message)})}})';
