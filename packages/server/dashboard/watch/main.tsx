import '../base.css'
import { render } from 'preact'
import { Header } from '../header.tsx'

render(<Header page="dashboard" />, document.body)
